"""What both commands take, which changes with a decision only, and what they load to say so."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer

ROOT = Path(__file__).resolve().parent.parent
LAUNCH_OPTIONS = {  # beside those about models, --fsdp_* and --dynamo_*
    "--num_processes",
    "-n",
    "--processes_per_machine",
    "--nproc_per_node",
    "--cpu",
    "--gpu_ids",
    "--mixed_precision",
    "--gradient_accumulation_steps",
    "--num_cpu_threads_per_process",
    "--enable_cpu_affinity",
    "--num_machines",
    "--nnodes",
    "--machine_rank",
    "--node_rank",
    "--main_process_ip",
    "--master_addr",
    "--main_process_port",
    "--master_port",
    "--rdzv_backend",
    "--rdzv_conf",
    "--max_restarts",
    "--monitor_interval",
    "-m",
    "--module",
    "--no_python",
    "--log_dir",
    "--console",
    "--debug",
    "--use_fsdp",
    "--dp_replicate_size",
    "--dp_shard_size",
    "--config_file",
    "--explain",
    "--dry_run",
    "--multi_gpu",
    "--tpu",
    "--same_network",
}
MIGRATE_OPTIONS = {
    "--check",
    "--color",
    "--diff",
    "--explain",
    "--explain-role",
    "--ignore",
    "--jobs",
    "-j",
    "--no-cache",
    "--cache-dir",
    "--interactive",
    "-i",
    "--undo-patch",
    "--notebook-launcher",
    "--exclude",
    "--for",
    "--force-exclude",
    "--no-gitignore",
    "--since",
    "--baseline",
    "--update-baseline",
    "--config",
    "--isolated",
    "--output-format",
    "--quiet",
    "-q",
    "--report",
    "--rules",
    "--review",
    "--annotate",
    "--select",
    "--stdin-filename",
    "--verify",
    "--steps",
    "--processes",
    "--time-limit",
    "--verify-json",
    "--target",
    "--install-completion",
    "--show-completion",
    "--traceback",
    "--verbose",
    "-v",
    "--version",
    "--write",
    "-w",
}


def loaded_after(code):
    """The top-level modules that are loaded after `code` ran in a fresh interpreter, whatever it exits with."""
    wrapped = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint('LOADED', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", wrapped], cwd=ROOT, capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("LOADED"))
    return {name.partition(".")[0] for name in line.split()[1:]}


def run_main(module, *arguments):
    return f"sys.argv = {['x', *arguments]!r}; from {module} import main; main()"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["launch", "--help"],
        ["config", "--help"],
        ["env", "--help"],
        ["test", "--help"],
        ["estimate", "--help"],
        ["launch", "missing.py"],
    ],
)
def test_runtime_commands_start_without_torch(arguments):
    loaded = loaded_after(run_main("runtime.cli", *arguments))
    assert "typer" in loaded
    assert not loaded & {"torch", "numpy", "libcst", "migrate"}
    if "--help" in arguments:  # in 150 ms of CPU: these take as long as all the rest
        assert not loaded & {"pydantic", "yaml", "importlib_metadata", "rich"}


def test_import_runtime_loads_no_torch():
    assert not loaded_after("import runtime") & {"torch", "numpy", "typer"}


def test_migrate_help_loads_neither_torch_nor_libcst():
    loaded = loaded_after(run_main("migrate.cli", "--help"))
    assert "typer" in loaded
    assert not loaded & {"torch", "numpy", "libcst", "runtime"}


def option_names(command):
    return {name for parameter in command.params for name in parameter.opts if name.startswith("-")}


def test_runtime_options_are_frozen():
    from runtime.cli import app

    command = typer.main.get_command(app)
    assert set(command.commands) == {"config", "launch", "test", "estimate", "env"}
    names = option_names(command.commands["launch"])
    assert {name for name in names if not name.startswith(("--fsdp_", "--dynamo_"))} == LAUNCH_OPTIONS
    assert option_names(command.commands["config"]) == {"--config_file", "--project", "--default", "--update"}
    own = {"--explain", "--dry_run", "-m", "--module", "--no_python"}  # the rest `runtime test` has, too
    assert option_names(command.commands["test"]) == names - own
    assert option_names(command.commands["estimate"]) == set()
    assert option_names(command.commands["env"]) == set()


def test_every_option_of_migrate_has_an_example():
    from migrate.cli import app
    from migrate.cli.examples import EXAMPLES

    shown = {word for each in EXAMPLES for word in each.command.split()}
    names = {parameter.opts[0] for parameter in typer.main.get_command(app).params if parameter.opts[0].startswith("-")}
    assert names - shown == set(), "add it to migrate/cli/examples.py"
    assert shown >= {"migrate"}


def test_migrate_options_are_frozen():
    from migrate.cli import app

    assert option_names(typer.main.get_command(app)) == MIGRATE_OPTIONS
