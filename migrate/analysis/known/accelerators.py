"""Programs that are converted already: who runs their steps."""

from migrate.analysis.known.table import Makes, Row
from migrate.analysis.roles import Role

ROWS: tuple[Row, ...] = tuple(
    Makes(name, Role.ACCELERATOR)
    for name in (
        "accelerate.Accelerator accelerate.accelerator.Accelerator runtime.Accelerator lightning.Fabric "
        "lightning.fabric.Fabric lightning.fabric.fabric.Fabric lightning_fabric.Fabric"
    ).split()
)

#: Methods of an accelerator that all processes must call, and of these the ones that only wait.
COLLECTIVES = frozenset(
    """gather gather_for_metrics reduce pad_across_processes wait_for_everyone backward clip_grad_norm_ get_state_dict
    save_state load_state save_model check_trigger main_process_first local_main_process_first join_uneven_inputs
    end_training prepare prepare_model prepare_optimizer prepare_data_loader prepare_scheduler""".split()
)
BARRIERS = frozenset({"wait_for_everyone"})
PREPARES = frozenset("prepare prepare_model prepare_optimizer prepare_data_loader".split())
COLLECTIVE_FUNCTIONS = frozenset(
    f"{module}.{name}"
    for module in ("accelerate.utils", "accelerate.utils.operations", "runtime", "runtime.collectives")
    for name in """broadcast broadcast_object_list gather gather_object reduce pad_across_processes
    wait_for_everyone""".split()
)
#: Contexts in which processes run one after the other.
IN_TURNS = frozenset({"main_process_first", "local_main_process_first"})
