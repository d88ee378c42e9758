"""What a training loop puts into tensors and arrays where they stand is of one process's batches, and told."""

import pytest

HOLES = {
    "imports": "import bisect\nimport copy\nimport heapq\nimport numpy as np",
    "made": "sums, counts, array = torch.zeros(()), torch.zeros(3), np.zeros(3)\n"
    "follower, worst = copy.deepcopy(model), []",
}
PLACES = "places = (y.flatten() * 2).long()"
TOLD = {
    "an array by index": ("np.add.at(array, places.numpy(), 1)", "array"),
    "an array by out": ("np.add(array, x.sum().item(), out=array)", "array"),
    "a tensor by out": ("torch.add(counts, x.sum(), out=counts)", "counts"),
    "rows": ("counts.index_add_(0, places, torch.ones(len(places)))", "counts"),
    "by another name": ("counts.scatter_add_(dim=0, index=places, src=torch.ones(len(places)))", "counts"),
    "a number": ("sums.add_(loss.detach())", "sums"),
    "a heap": ("heapq.heappush(worst, loss.item())", "worst"),
    "a list in order": ("bisect.insort(worst, loss.item())", "worst"),
    "a moving average": ("sums.mul_(0.9).add_(0.1 * loss.detach())", "sums"),
}
WORDS = "read after this loop, is of one process's share of the data"


def _told(report):
    return [finding.message.partition(",")[0] for finding in report.findings if WORDS in finding.message]


@pytest.mark.parametrize("name", TOLD)
def test_what_is_put_in_place_is_told(convert_text, programs, name):
    step, place = TOLD[name]
    source = programs(HOLES | {"step": f"{PLACES}\n{step}", "epoch": "print(sums, counts, array, worst)"})[0]
    report, result = convert_text(source)

    assert "accelerator.prepare(" in result
    assert _told(report) == [place]


OTHERS = {
    "weights": "for p, q in zip(follower.parameters(), model.parameters()): p.data.mul_(0.9).add_(q.data)",
    "gradients": "for p in model.parameters(): p.grad.clamp_(-1, 1)",
    "the batch": "x.add_(y)",
    "what does not go by the batch": "counts.add_(1)",
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_sum_is_not(convert_text, programs, name):
    report, result = convert_text(
        programs(HOLES | {"step": OTHERS[name], "epoch": "print(sums, counts, array, worst)"})[0]
    )

    assert "accelerator.prepare(" in result
    assert _told(report) == []


def test_what_is_decided_by_it_is_refused(refused, programs):
    epoch = "if sums.item() < 3:\n    torch.save(model.state_dict(), 'best.pt')"
    refused("MIG122", "if sums", ["goes by sums"], **HOLES | {"step": TOLD["a number"][0], "epoch": epoch})
