"""A folder whose name goes by what is there already: all processes use the one that the main process has named."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
    import os

    import torch
    from torch.utils.data import DataLoader, TensorDataset


    def folder(top):
        if not os.path.exists(top):
            path = os.path.join(top, "0")
            os.makedirs(path)
        else:
            path = os.path.join(top, str(max(int(name) for name in os.listdir(top)) + 1))
            os.makedirs(path)
        return path


    def main():
        torch.manual_seed(0)
        x = torch.rand(16, 2)
        loader = DataLoader(TensorDataset(x), batch_size=4)
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        CHOSEN
        for (x,) in loader:
            loss = model(x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save(model.state_dict(), os.path.join(path, "last.pt"))
        model.load_state_dict(torch.load(os.path.join(path, "last.pt")))
        print(int(path.rpartition("_")[2]) if "_" in path else 0)


    main()
"""
CHOICES = {
    "by their number": """count = len(os.listdir("runs")) if os.path.exists("runs") else 0
        path = os.path.join("runs", f"run_{count}")
        os.makedirs(path)""",
    "another one where it is there": """path = "runs/run_0"
        if os.path.exists(path):
            path = f"runs/run_{len(os.listdir('runs'))}"
        os.makedirs(path)""",
}


@pytest.mark.parametrize("name", CHOICES)
def test_all_take_the_folder_that_the_main_process_has_named(
    convert_text, numbers_printed, tmp_path, monkeypatch, name
):
    monkeypatch.chdir(tmp_path)
    report, result = convert_text(PROGRAM.replace("CHOSEN", CHOICES[name]))

    assert not [finding for finding in report.findings if finding.kind is Kind.LEFT]
    assert result.count("= broadcast_object_list([") == 1
    for number in range(3):  # who comes late finds what the first has made
        assert numbers_printed(result, 2) == [number]


def test_what_a_function_names_is_told_below_its_branches(convert_text, numbers_printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = PROGRAM.replace("CHOSEN", 'path = folder("runs")').replace(
        'int(path.rpartition("_")[2]) if "_" in path else 0', "os.path.basename(path)"
    )
    _, result = convert_text(source)

    assert "    path = broadcast_object_list([path])[0]\n    return path\n" in result
    for number in range(3):
        assert numbers_printed(result, 2) == [number]


def test_where_data_are_looked_for_is_not_told(convert_text):
    looked = """path = "."
        if os.path.exists("data"):
            path = "data"
        torch.load(os.path.join(path, "weights.pt"))"""
    _, result = convert_text(PROGRAM.replace("CHOSEN", looked))

    assert "broadcast_object_list" not in result


def test_a_folder_that_is_picked_for_holding_something_has_its_own_name(convert_text):
    picked = """kept = [name for name in os.listdir("runs") if len(os.listdir(os.path.join("runs", name)))]
        path = os.path.join("runs", sorted(kept)[-1])
        os.makedirs(path, exist_ok=True)"""
    report, result = convert_text(PROGRAM.replace("CHOSEN", picked))
    assert not [finding for finding in report.findings if finding.code == "MIG117"]
    assert "broadcast_object_list([" not in result.replace("broadcast_object_list([torch.initial_seed", "")
