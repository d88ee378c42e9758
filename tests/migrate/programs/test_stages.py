"""Which objects are prepared together, and where."""

import pytest

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

loader = DataLoader(data)
test = DataLoader(others)

def fit(net, opt):
    for x, y in loader:
        loss = (net(x) - y).sum()
        loss.backward()
        opt.step()

def score(net):
    net.eval()
    with torch.no_grad():
        return sum((net(x) - y).abs().sum().item() for x, y in test)

"""
MAKE = "net = nn.Linear(1, 1)\nopt = optim.SGD(net.parameters(), lr=0.1)\n"
FIT = "fit(net, opt)\n"
RESTORE = "def restore(net):\n    net.load_state_dict(torch.load('best'))\n    return net\n\n"


def stages(conversion):
    return [[named.target for named in stage.objects] for stage in conversion.placement.stages.each]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (MAKE + FIT, [["loader", "net", "opt"]]),
        (MAKE + FIT + MAKE + FIT, [["loader", "net", "opt"], ["net", "opt"]]),
        (MAKE + FIT + MAKE.splitlines()[1] + "\n" + FIT, [["loader", "net", "opt"], ["opt"]]),
        (MAKE + FIT + "loader = DataLoader(more)\n" + MAKE + FIT, [["loader", "net", "opt"]] * 2),
        (
            f"for lr in rates:\n    {MAKE.replace(chr(10), chr(10) + '    ')}fit(net, opt)\n",
            [["loader"], ["net", "opt"]],
        ),
        (
            "net = nn.Linear(1, 1)\nif train:\n    opt = optim.SGD(net.parameters(), lr=0.1)\n    fit(net, opt)\n",
            [["loader", "net"], ["opt"]],
        ),
        (
            "if a:\n    net = nn.Linear(1, 1)\nelse:\n    net = nn.Linear(1, 2)\n" + MAKE[22:] + FIT,
            [["loader", "net", "opt"]],
        ),
        (MAKE + "net = net.cuda()\n" + FIT, [["loader", "net", "opt"]]),
        (MAKE + FIT + "net = net.to('cuda:0')\n" + FIT, [["loader", "net", "opt"]]),
        (RESTORE + MAKE + FIT + "net = restore(net).to('cuda:0')\n" + FIT, [["loader", "net", "opt"]]),
        (MAKE + FIT + "net = net.cpu()\nprint(score(net))\n", [["loader", "net", "opt"]]),
    ],
    ids=[
        "one",
        "another model",
        "another optimizer",
        "another loader",
        "in a loop",
        "under a flag",
        "either",
        "moved",
        "moved once more",
        "given back and moved",
        "moved away",
    ],
)
def test_what_is_made_after_a_use_is_prepared_by_itself(decide, body, expected):
    program, conversion = decide(HEAD + body)

    assert not program.refusals
    assert stages(conversion) == expected


EVALUATE = """
def evaluate(net):
    net.eval()
    total = 0
    with torch.no_grad():
        for x, y in test:
            total += (net(x) - y).abs().sum().item()
    return total

def tell(net):
    print(evaluate(net))

def tell_more(net):
    tell(net)

"""


@pytest.mark.parametrize("call", ["evaluate(net)", "tell(net)", "tell_more(net)"])
def test_what_an_evaluation_needs_is_prepared_above_it_also_where_other_functions_lead_to_it(decide, call):
    first, second = MAKE.splitlines()
    program, conversion = decide(f"{HEAD}{EVALUATE}{first}\n{call}\n{second}\n{FIT}")

    assert not program.refusals
    assert stages(conversion) == [["loader", "net"], ["opt"]]


def test_a_model_is_prepared_above_a_list_that_keeps_it(decide):
    made = MAKE.replace("opt =", "nets = [net]\nopt =")
    program, conversion = decide(
        HEAD + MAKE + FIT + made + "for each, step in zip(nets, [opt]):\n    fit(each, step)\n"
    )

    assert not program.refusals
    assert stages(conversion) == [["loader", "net", "opt"], ["net"], ["opt"]]


@pytest.mark.parametrize(
    ("after", "says"),
    [
        ("net = nn.DataParallel(net)\nfit(net, opt)\n", "made or wrapped anew"),
        ("net.bias = nn.Parameter(torch.zeros(1))\nfit(net, opt)\n", "a layer of net is replaced"),
        (
            "import copy\nother = copy.deepcopy(net)\nopt = optim.SGD(other.parameters(), lr=0.1)\nfit(other, opt)\n",
            "trains a copy",
        ),
        (
            "some, rest = torch.utils.data.random_split(data, [8, 2])\nloader = DataLoader(some)\n" + MAKE + FIT,
            "drawn at random here",
        ),
        ("net = nn.Linear(1, 1)\nfit(net, opt)\n", "no optimizer has its parameters"),
    ],
    ids=["wrapped", "layer", "copy", "split", "untrained"],
)
def test_what_prepare_would_not_see_is_refused(decide, after, says):
    program, conversion = decide(HEAD + MAKE + FIT + after)

    assert conversion is None
    assert any(says in refusal.why for refusal in program.refusals)


def test_a_model_that_is_only_looked_at_may_have_the_name_before_the_next_one_that_is_trained(decide):
    program, conversion = decide(HEAD + MAKE + FIT + "net = nn.Linear(1, 1)\nprint(net)\n" + MAKE + FIT)

    assert not program.refusals
    assert stages(conversion) == [["loader", "net", "opt"], ["net", "opt"]]


def test_a_model_that_is_only_looked_at_may_keep_the_name_where_what_is_trained_below_has_another_one(decide):
    other = MAKE.replace("net", "other") + "fit(other, opt)\n"
    program, conversion = decide(HEAD + MAKE + FIT + "net = nn.Linear(1, 1)\nprint(net)\n" + other)

    assert not program.refusals
    assert stages(conversion) == [["loader", "net", "opt"], ["other", "opt"]]


def test_where_the_next_trained_model_is_made_on_some_ways_alone_the_other_one_may_be_trained_on(decide):
    made = MAKE.replace("\n", "\n    ").rstrip(" ")
    again = f"net = nn.Linear(1, 1)\nif len(data) > 1:\n    {made}"
    program, conversion = decide(HEAD + MAKE + FIT + again + FIT)

    assert conversion is None
    assert any("no optimizer has its parameters" in refusal.why for refusal in program.refusals)


@pytest.mark.parametrize(
    "made",
    [
        "net = library.wrap(net)",
        "net, opt = library.wrap(net, optimizer=opt)",
        "net, opt, loader = library.Engine().make_private(module=net, optimizer=opt, data_loader=loader)",
    ],
    ids=["a model", "with its optimizer", "with its loader"],
)
def test_what_a_library_makes_of_a_prepared_model_is_not_trained(decide, made):
    """It may go around the wrapper, and a loader that it makes of a prepared one is none."""
    program, conversion = decide(f"import library\n{HEAD}{MAKE}if len(data) > 1:\n    {made}\n{FIT}")

    assert conversion is None
    assert any("makes something of net here" in refusal.why for refusal in program.refusals)


def test_what_a_library_makes_of_a_model_below_its_training_is_nobodys_concern(decide):
    program, _ = decide(f"import library\n{HEAD}{MAKE}{FIT}net = library.wrap(net)\n")

    assert not program.refusals


def test_data_that_are_drawn_after_a_seed_are_the_same(decide):
    drawn = (
        "torch.manual_seed(1)\nsome, rest = torch.utils.data.random_split(data, [8, 2])\nloader = DataLoader(some)\n"
    )
    program, _ = decide(HEAD + MAKE + FIT + drawn + MAKE + FIT)

    assert not program.refusals


SCORE = """
def score(net):
    net.eval()
    total = 0
    for x, y in test:
        total += (net(x) - y).abs().sum().item()
    return total

"""


@pytest.mark.parametrize(("left", "is_shared"), [("", True), ("net.train()\n", False)])
def test_a_function_that_sets_the_mode_sets_that_of_the_model_it_is_given(decide, left, is_shared):
    body = MAKE + FIT + "print(score(net))\n" + left + MAKE + FIT + "print(score(net))\n"
    program, conversion = decide(HEAD.partition("def score")[0] + SCORE + body)

    assert not program.refusals
    assert bool(conversion.shared) == is_shared


@pytest.mark.parametrize(("left", "is_shared"), [("", True), ("net.train()\n", False)])
def test_models_of_earlier_stages_count_for_the_mode(decide, left, is_shared):
    body = "net.eval()\nfor x, y in test:\n    print((net(x) - y).sum().item())\n"
    program, conversion = decide(
        HEAD.split("def score", maxsplit=1)[0] + MAKE + FIT + "net.eval()\n" + left + MAKE + FIT + body
    )

    assert not program.refusals
    assert bool(conversion.shared) == is_shared


def test_the_accelerator_is_made_for_all_stages(decide):
    guarded = "if __name__ == '__main__':\n    " + (MAKE + FIT).replace("\n", "\n    ") + "\n"
    _, conversion = decide(HEAD + guarded + MAKE + FIT)

    assert stages(conversion) == [["loader"], ["net", "opt"], ["net", "opt"]]
    assert conversion.placement.accelerator.statement.lineno <= conversion.placement.stages.first.end
    assert conversion.placement.accelerator.statement.col_offset == 0


DECAY = """
def decay(opt, epoch):
    for group in opt.param_groups:
        group["lr"] = 0.1 / epoch
    return opt

def anew(opt, epoch):
    opt = optim.SGD(opt.param_groups, lr=0.1 / epoch)
    return opt

"""


@pytest.mark.parametrize(("function", "is_the_same"), [("decay", True), ("anew", False)])
def test_a_function_that_gives_back_the_optimizer_that_it_is_handed_makes_no_other_one(decide, function, is_the_same):
    body = f"{MAKE}for epoch in range(1, 3):\n    opt = {function}(opt, epoch)\n    fit(net, opt)\n"
    _, conversion = decide(HEAD + DECAY + body)

    assert (conversion is not None and stages(conversion) == [["loader", "net", "opt"]]) is is_the_same


RESUME = """
def resume(net, opt, path):
    if path is None:
        return net, opt, 0
    net.load_state_dict(torch.load(path))
    return {back}, 3

"""


@pytest.mark.parametrize(
    ("back", "is_the_same"), [("net, opt", True), ("opt, net", False), ("nn.Linear(1, 1), opt", False)]
)
def test_a_function_that_gives_back_one_of_several_parts_makes_no_other_one(decide, back, is_the_same):
    body = f"{MAKE}for epoch in range(1, 3):\n    net, opt, start = resume(net, opt, path)\n    fit(net, opt)\n"
    _, conversion = decide(HEAD + RESUME.format(back=back) + body)

    assert (conversion is not None and stages(conversion) == [["loader", "net", "opt"]]) is is_the_same
