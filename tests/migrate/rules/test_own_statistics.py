"""What a training loop counts, collects and fills: it is joined after the loop, or told."""

import pytest

JOINED = {
    "a tuple of sums": (
        "total, seen = 0.0, 0",
        "total, seen = total + loss.item() * len(x), seen + len(x)",
        "print(total / seen)",
        ["total = sum(accelerator.gather_for_metrics([total]))", "seen = sum(accelerator.gather_for_metrics([seen]))"],
    ),
    "a list of one more": (
        "losses = []",
        "losses += [loss.item()]",
        "print(sum(losses) / len(losses))",
        ["losses = accelerator.gather_for_metrics(losses)"],
    ),
    "a list that is made by its name": (
        "losses = list()",
        "losses.append(loss.item())",
        "print(sum(losses) / len(losses))",
        ["losses = accelerator.gather_for_metrics(losses)"],
    ),
}
TOLD = {
    "a queue of the last": (
        "last = deque(maxlen=9)",
        "last.append(loss.item())",
        "print(sum(last) / len(last))",
        "last",
    ),
    "counts by a test": (
        "right = 0",
        "for a in y:\n    if a > 0:\n        right += 1",
        "print(right)",
        "right",
    ),
    "counts by a class": ("hits = {}", "for a in y.long().view(-1).tolist():\n    hits[a] += 1", "print(hits)", "hits"),
    "counts of a library": ("hits = Counter()", "hits.update(y.long().view(-1).tolist())", "print(hits)", "hits"),
    "counts by a default": (
        "hits = {}",
        "for a in y.long().view(-1).tolist():\n    hits[a] = hits.get(a, 0) + 1",
        "print(hits)",
        "hits",
    ),
    "lists by class": (
        "lists = {0: [], 1: []}",
        "for a, b in zip(y.long().view(-1).tolist(), output.view(-1).tolist()):\n    lists[a].append(b)",
        "print(lists)",
        "lists",
    ),
    "what was met": ("met = set()", "for a in y.view(-1).tolist():\n    met.add(a)", "print(len(met))", "met"),
    "pairs": (
        "scores = {}",
        "scores.update(zip(y.view(-1).tolist(), output.view(-1).tolist()))",
        "print(scores)",
        "scores",
    ),
    "a matrix": ("matrix = torch.zeros(2, 2)", "for a in y.long():\n    matrix[a, a] += 1", "print(matrix)", "matrix"),
    "a pair": ("pair = (0.0, 0)", "pair = (pair[0] + loss.item(), pair[1] + 1)", "print(pair[0])", "pair"),
    "a new dictionary": ("log = {}", 'log = {"loss": loss.item()}', "print(log)", "log"),
}


@pytest.mark.parametrize("name", JOINED)
def test_sums_and_lists_are_joined(convert_text, programs, name):
    start, step, epoch, lines = JOINED[name]
    _, new = convert_text(programs({"start": start, "step": step, "epoch": epoch})[0])

    assert all(line in new for line in lines)


@pytest.mark.parametrize("name", TOLD)
def test_the_rest_is_told(convert_text, programs, name):
    start, step, epoch, what = TOLD[name]
    holes = {"imports": "from collections import Counter, deque", "start": start, "step": step, "epoch": epoch}
    report, new = convert_text(programs(holes)[0])

    assert "accelerator.backward(loss)" in new
    assert "gather_for_metrics" not in new
    said = [finding.message for finding in report.findings]
    assert f"{what}, read after this loop, is of one process's share of the data" in said
