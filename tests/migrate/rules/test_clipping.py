import pytest

UNCHANGED = {
    "by hand": {"backward": ("loss.backward()", "accelerator.backward(loss)"), "step": "output.clamp_(-1.0, 1.0)"},
    "a norm that is only measured": {
        "imports": "from torch.nn.utils import get_total_norm",
        "step": "norm = get_total_norm(p.grad for p in model.parameters())",
    },
    "a function of the same name": {
        "setup": "def clip_grad_norm_(parameters, norm):\n    return norm",
        "step": "clip_grad_norm_(model.parameters(), 1.0)",
    },
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    holes = UNCHANGED[name]
    unchanged(**{hole: text for hole, text in holes.items() if hole != "backward"})


NORM = "accelerator.clip_grad_norm_(model.parameters(), 1.0)"
CHANGED = {
    "by its full name": {"step": ("torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)", NORM)},
    "through nn": {"step": ("nn.utils.clip_grad_norm_(model.parameters(), 1.0)", NORM)},
    "by its old name": {"step": ("nn.utils.clip_grad_norm(model.parameters(), 1.0)", NORM)},
    "imported, and the import goes": {
        "imports": ("from torch.nn.utils import clip_grad_norm_", ""),
        "step": ("clip_grad_norm_(model.parameters(), 1.0)", NORM),
    },
    "imported under another name": {
        "imports": ("from torch.nn.utils import clip_grad_norm_ as clip", ""),
        "step": ("clip(model.parameters(), 1.0)", NORM),
    },
    "one of two imported names": {
        "imports": (
            "from torch.nn.utils import clip_grad_norm_, parameters_to_vector",
            "from torch.nn.utils import parameters_to_vector",
        ),
        "step": ("clip_grad_norm_(model.parameters(), 1.0)", NORM),
        "end": "vector = parameters_to_vector(model.parameters())",
    },
    "the norm is used": {
        "step": (
            "norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0, norm_type=2)",
            "norm = accelerator.clip_grad_norm_(model.parameters(), max_norm=1.0, norm_type=2)",
        )
    },
    "by value": {
        "step": (
            "nn.utils.clip_grad_value_(model.parameters(), 0.5)",
            "accelerator.clip_grad_value_(model.parameters(), 0.5)",
        )
    },
    "under a condition": {
        "step": (f"if epoch:\n    nn.utils.{NORM[12:]}", f"if epoch:\n    {NORM}"),
    },
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed(changed, name):
    changed(**CHANGED[name])


def test_an_import_that_is_used_elsewhere_stays(changed):
    changed(
        imports="from torch.nn.utils import clip_grad_norm_",
        step=("clip_grad_norm_(model.parameters(), 1.0)", NORM),
        end="clipping = clip_grad_norm_",
    )


def test_it_can_be_left_out(programs, convert_text):
    before, _ = programs({"step": "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"})
    _, result = convert_text(before, ignore=("MIG109",))

    assert "nn.utils.clip_grad_norm_(model.parameters(), 1.0)" in result
    assert "accelerator.backward(loss)" in result


OWN = """
class Careful(optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                torch.nn.utils.clip_grad_norm_(p, 1.0)
                p.data.add_(p.grad, alpha=-group["lr"])
"""


def test_an_optimizer_of_the_project_sees_what_the_accelerator_has_made_of_gradients(programs, convert_text):
    own = programs({"setup": OWN})[0].replace("optim.SGD(", "Careful(")
    _, result = convert_text(own)

    assert "accelerator.backward(loss)" in result
    assert "torch.nn.utils.clip_grad_norm_(p, 1.0)" in result
