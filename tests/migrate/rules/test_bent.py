"""What a training averages over its batches, and is no mean over their samples, is told (contract E3)."""

import pytest

IMPORTS = "import math\nimport numpy as np\nfrom sklearn.metrics import accuracy_score, f1_score"
SETUP = """
def fit(output, y):
    left = ((output - y) ** 2).sum()
    return 1 - left / ((y - y.mean()) ** 2).sum()

def dice(output, y):
    both = np.sum(output * y)
    return 2.0 * both / (np.sum(output) + np.sum(y))

def dice_each(output, y):
    return (2 * (output * y).sum(1) / (output.sum(1) + y.sum(1))).mean()

def error(output, y):
    return (output - y).abs().sum() / len(y)
"""
ROWS = "output.detach().numpy(), y.numpy()"
BENT = {
    "a perplexity": "total += math.exp(loss.item())",
    "by a name": "rounded = min(loss.item(), 9)\ntotal += math.exp(rounded)",
    "of tensors": "total += loss.detach().sqrt().item()",
    "of arrays": "total += np.log(loss.item())",
    "a score of the program": "total += fit(output, y).item()",
    "in a list": f"scores.append(dice({ROWS}))",
    "of a library": f"scores.append(f1_score({ROWS}))",
}
PLAIN = {
    "a loss": "total += loss.item()",
    "of each sample": "total += output.exp().mean().item()",
    "a score of each sample": "total += dice_each(output, y).item()",
    "by the size of the batch": "total += error(output, y).item()",
    "a mean of a library": f"scores.append(accuracy_score({ROWS}))",
    "shown alone": "print(math.exp(loss.item()))",
}
END = "print(total / len(loader), sum(scores) / max(1, len(scores)))"


def _told(convert_text, programs, step):
    holes = {"imports": IMPORTS, "setup": SETUP, "start": "total, scores = 0.0, []", "step": step, "epoch": END}
    report, result = convert_text(programs(holes)[0])
    assert "accelerator.prepare(" in result
    return [finding.message for finding in report.findings if "which is no mean over the samples" in finding.message]


@pytest.mark.parametrize("name", BENT)
def test_what_is_no_mean_is_told(convert_text, programs, name):
    (told,) = _told(convert_text, programs, BENT[name])
    assert told.startswith("scores averages " if "scores" in BENT[name] else "total averages ")


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_a_mean_is_not(convert_text, programs, name):
    assert _told(convert_text, programs, PLAIN[name]) == []
