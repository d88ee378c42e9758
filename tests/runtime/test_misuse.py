"""Mistakes that scripts make and nothing would show: told once, with the line of the script and the way out."""

from __future__ import annotations

import warnings

import pytest
import torch
from ranks import run_ranks
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

from runtime import Accelerator
from runtime.errors import BackwardError, LoadError

X = torch.arange(44.0).reshape(22, 2) / 44
Y = X.sum(1, keepdim=True)


def parts(batch_size=4):
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(TensorDataset(X, Y), batch_size=batch_size)


def warned(run, *arguments):
    """What a run warns of, with the file that each is said to be in; and what it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run(*arguments)
    return [(str(item.message), item.filename) for item in caught], result


def train(a, model, optimizer, loader, forward=None):
    for x, y in loader:
        optimizer.zero_grad()
        a.backward(mse_loss((forward or model)(x), y))
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()]).tolist()


def told_only(results, text):
    """One warning of it, on the main process alone, and of a line of the script."""
    (first, _), *others = results
    assert len(first) == 1
    assert text in first[0][0]
    assert first[0][1].endswith("test_misuse.py")
    assert not any(said for said, _ in others)


# gradients that nobody averages


def unprepared_model():
    a = Accelerator(cpu=True)
    model, optimizer, loader = parts()
    return warned(train, a, model, *a.prepare(optimizer, loader))


def test_a_model_that_is_not_prepared_is_told():
    results = run_ranks(unprepared_model, 2)
    told_only(results, "SGD trains parameters (2, the first of shape (1, 2)) whose gradients are not averaged")


def parameter_beside():
    a = Accelerator(cpu=True)
    model, optimizer, loader = parts()
    scale = nn.Parameter(torch.ones(1))
    optimizer.add_param_group({"params": [scale]})
    model, optimizer, loader = a.prepare(model, optimizer, loader)
    return warned(train, a, model, optimizer, loader, lambda x: model(x) * scale)


def test_a_parameter_beside_the_model_is_told():
    told_only(run_ranks(parameter_beside, 2), "SGD trains parameters (1, the first of shape (1,))")


def layer_put_in_later():
    a = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = a.prepare(nn.Sequential(nn.Linear(2, 1)))
    a.unwrap_model(model).append(nn.Linear(1, 1))
    _, _, loader = parts()
    optimizer, loader = a.prepare(torch.optim.SGD(model.parameters(), lr=0.1), loader)
    return warned(train, a, model, optimizer, loader)


def test_a_layer_that_a_prepared_model_gets_later_is_told():
    told_only(run_ranks(layer_put_in_later, 2), "SGD trains parameters (2, the first of shape (1, 1))")


def wrapped_by_hand():
    a = Accelerator(cpu=True)
    model, optimizer, loader = parts()
    model = nn.parallel.DistributedDataParallel(model)
    return warned(train, a, model, *a.prepare(optimizer, loader))


def test_a_model_that_the_script_has_wrapped_is_averaged_and_not_told():
    (first, one), (second, other) = run_ranks(wrapped_by_hand, 2)
    assert first == second == []
    assert one == other


def around_the_wrapper(is_around):
    a = Accelerator(cpu=True)
    model, optimizer, loader = a.prepare(*parts())
    return warned(train, a, model, optimizer, loader, a.unwrap_model(model) if is_around else None)


def test_a_model_that_is_run_around_its_wrapper_is_averaged():
    (first, one), (_, other) = around = run_ranks(around_the_wrapper, 2, True)
    told_only(around, "A backward reached a Linear beside the forward of what prepare() gave for it")
    assert "Run what prepare() gave" in first[0][0]
    (said, right), _ = run_ranks(around_the_wrapper, 2, False)
    assert said == []
    assert one == other
    assert one == pytest.approx(right, abs=1e-6)


# accumulation


def accumulating(prepared, *, is_guarded=True, own_backward=False, clips=False):
    """Trains with windows of two micro-steps; `prepared` says what of model, optimizer and loader is prepared."""
    a = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model, optimizer, loader = (
        a.prepare(item) if item_is else item for item, item_is in zip(parts(), prepared, strict=True)
    )

    def run():
        for x, y in loader:
            with a.accumulate(model):
                loss = mse_loss(model(x), y)
                loss.backward() if own_backward else a.backward(loss)
                if clips:
                    a.clip_grad_norm_(model.parameters(), 0.01)
                if not is_guarded or a.sync_gradients:
                    optimizer.step()
                    optimizer.zero_grad()

    return warned(run)


def test_an_optimizer_that_steps_after_every_micro_step_is_told():
    said = accumulating((True, False, True), is_guarded=False)
    told_only([said], "parameters of Linear change between the micro-steps of one window of accumulate()")


def accumulating_apart():
    """As above: the processes part before the first gradients are exchanged."""
    with pytest.raises(BackwardError) as caught:
        accumulating((True, False, True), is_guarded=False)
    return str(caught.value)


def test_processes_that_have_parted_before_the_first_exchange_are_an_error():
    for said in run_ranks(accumulating_apart, 2):
        assert "the processes hold different values of weight of a Linear" in said


def loaded_by_one():
    a = Accelerator(cpu=True)
    model, optimizer, loader = a.prepare(*parts())
    if a.is_main_process:
        nn.init.ones_(a.unwrap_model(model).weight)
    with pytest.raises(BackwardError) as caught:
        train(a, model, optimizer, loader)
    return str(caught.value)


def test_weights_that_one_process_has_loaded_are_an_error():
    for said in run_ranks(loaded_by_one, 2):
        assert "different values of weight of a Linear" in said
        assert "Load and initialise before prepare(), or alike on all processes." in said


@pytest.mark.parametrize("prepared", [(True, True, True), (True, False, True), (False, False, False)])
def test_windows_that_the_script_keeps_by_itself_are_not_told(prepared):
    assert accumulating(prepared)[0] == []


def test_an_optimizer_of_another_accelerator_is_told():
    model, optimizer, loader = Accelerator(cpu=True).prepare(*parts())
    a = Accelerator(cpu=True, gradient_accumulation_steps=2)

    def run():
        for x, y in loader:
            with a.accumulate(model):
                a.backward(mse_loss(model(x), y))
                optimizer.step()

    told_only([warned(run)], "Pass it to prepare() of the accelerator whose accumulate() this is")


def test_a_backward_that_is_not_the_accelerators_is_told():
    told_only([accumulating((True,) * 3, own_backward=True)], "nothing divides their losses by the 2 micro-steps")


def test_a_closure_computes_its_gradients_in_the_step():
    a = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model, _, _ = parts()
    model, optimizer = a.prepare(model, torch.optim.LBFGS(model.parameters(), max_iter=1))

    def closure():
        optimizer.zero_grad()
        loss = mse_loss(model(X), Y)
        a.backward(loss)
        return loss

    assert warned(optimizer.step, closure)[0] == []


def test_gradients_that_are_clipped_in_the_middle_of_a_window_are_told():
    told_only([accumulating((True,) * 3, clips=True)], "Clip under `if accelerator.sync_gradients:`")


# schedules


def scheduled(is_by_epoch):
    a = Accelerator(cpu=True)
    model, optimizer, loader = parts()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    model, optimizer, loader, schedule = a.prepare(model, optimizer, loader, schedule)

    def run():
        for x, y in loader:
            a.backward(mse_loss(model(x), y))
            optimizer.step()
            if not is_by_epoch:
                schedule.step()
        if is_by_epoch:
            schedule.step()

    return warned(run)


def test_a_prepared_schedule_that_counts_epochs_is_told():
    told_only(run_ranks(scheduled, 2, True), "a prepared StepLR steps 2 times for each step() of the script")
    assert [said for said, _ in run_ranks(scheduled, 2, False)] == [[], []]
    assert scheduled(True)[0] == []  # one process


# evaluation


def evaluated(is_prepared, is_in_loop):
    a = Accelerator(cpu=True)
    model, _, loader = parts(batch_size=7)  # the last batch has one row
    model.eval()
    if is_prepared:
        model, loader = a.prepare(model, loader)

    def run():
        with torch.no_grad():
            if is_in_loop:
                return sum(len(a.gather_for_metrics(model(x))) for x, _ in loader)
            return len(a.gather_for_metrics(torch.cat([model(x) for x, _ in loader])))

    return warned(run)


def test_samples_that_count_twice_are_told():
    assert run_ranks(evaluated, 2, True, True) == [([], 22)] * 2
    told_only(run_ranks(evaluated, 2, False, True), "has got the same rows from all 2 processes")
    told_only(run_ranks(evaluated, 2, True, False), "has got rows (1) that were only added")


def gathered_for_itself():
    """Parts of data that the processes have made themselves, numbers that are the same everywhere, then rows."""
    a = Accelerator(cpu=True)
    r = a.process_index
    brought = [torch.tensor(1.0), torch.zeros(3), torch.arange(4.0) + r]
    return warned(lambda: [len(a.gather_for_metrics(item)) for item in brought])


def test_rows_that_differ_are_gathered_in_silence():
    assert run_ranks(gathered_for_itself, 2) == [([], [2, 6, 8])] * 2


def gathered_in_turn(sizes):
    a = Accelerator(cpu=True)
    loaders = [a.prepare(DataLoader(torch.arange(size), 2)) for size in sizes]
    with torch.no_grad():
        return warned(lambda: [[len(a.gather_for_metrics(rows)) for rows in step] for step in zip(*loaders)])  # noqa: B905


def test_loaders_in_turn_whose_rows_count_differently_are_told():
    results = run_ranks(gathered_in_turn, 2, (5, 6))
    told_only([(results[0][0][:1], None), results[1]], "rows of the other one may be missing or come twice")
    for sizes in ((5, 5), (6, 4)):
        assert [said for said, _ in run_ranks(gathered_in_turn, 2, sizes)] == [[], []]


# checkpoints and wrappers


def test_what_is_loaded_before_anything_is_prepared_is_an_error(tmp_path):
    a = Accelerator(cpu=True)
    a.prepare(*parts())
    a.save_state(tmp_path / "saved")
    with pytest.raises(LoadError, match=r"none is prepared: .* Call load_state\(\) after prepare\(\)"):
        Accelerator(cpu=True).load_state(tmp_path / "saved")
    model_alone = Accelerator(cpu=True)
    model_alone.prepare(parts()[0])  # to evaluate it: the optimizer is not missed
    model_alone.load_state(tmp_path / "saved")


def test_what_is_prepared_after_its_state_was_loaded_is_told(tmp_path):
    """It started anew, in silence."""
    a = Accelerator(cpu=True)
    a.prepare(*parts())
    a.save_state(tmp_path / "saved")
    again = Accelerator(cpu=True)
    model, optimizer, loader = parts()
    again.prepare(model)
    again.load_state(tmp_path / "saved")
    told_only([warned(again.prepare, optimizer)], r"optimizer.bin of the checkpoint is of what is prepared now")
    told_only([warned(again.prepare, loader)], r"dl_state_dict.bin of the checkpoint")
    assert warned(again.prepare, parts()[2])[0] == []  # one more than was saved


def test_more_batches_than_there_are_can_not_be_left_out_in_silence():
    a = Accelerator(cpu=True)
    loader = a.prepare(parts()[2])
    told_only([warned(list, a.skip_first_batches(loader, 9))], "leaves out more steps than the 6 of a pass")
    assert warned(list, a.skip_first_batches(loader, 6)) == ([], [])  # the epoch was over


class Configured(nn.Linear):
    def __init__(self):
        super().__init__(2, 1)
        self.size = 2

    def loss(self, x):
        return self(x).sum()


def wrapped():
    a = Accelerator(cpu=True)
    model = a.prepare(Configured())
    said = []
    for name in ("size", "loss", "weight", "nothing"):
        with pytest.raises(AttributeError) as caught:
            getattr(model, name)
        said.append(str(caught.value))
    other = nn.Linear(2, 1)
    model.load_state_dict(other.state_dict())  # a file of one process
    is_loaded = torch.equal(a.unwrap_model(model).weight, other.weight)
    model.load_state_dict(model.state_dict())
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict({"module.weight": other.weight})
    return said, is_loaded


def test_what_a_wrapper_hides_is_named_and_plain_keys_load():
    for (size, loss, weight, nothing), is_loaded in run_ranks(wrapped, 2):
        assert "Write accelerator.unwrap_model(model).size;" in size
        assert "unwrap_model(model).loss;" in loss
        assert "unwrap_model(model).weight;" in weight
        assert nothing == "'Replica' object has no attribute 'nothing'"
        assert is_loaded
