"""Losses that sum over the samples in other words than `x.sum()`: averaged over N processes, they are N times less."""

import pytest

BATCH = "error = model(x) - y\nflat = error.flatten()"
SUMS = {
    "a product with itself": "flat @ flat",
    "a product of two rows": "torch.dot(flat, flat)",
    "its method": "0.1 * flat.dot(flat)",
    "indexes": "torch.einsum('bi,bi->', error, error)",
    "the trace of a square": "torch.trace(error.T @ error)",
    "without what is no number": "error.pow(2).nansum()",
    "over the samples first": "error.pow(2).sum(dim=0).mean()",
    "over both": "torch.sum(error ** 2, dim=(0, 1))",
    "over the features first": "error.pow(2).sum(1).sum(0)",
}
MEANS = {
    "divided by how many there are": "(flat @ flat) / len(x)",
    "indexes, divided": "torch.einsum('bi,bi->', error, error) / len(error)",
    "indexes that leave the samples": "torch.einsum('bi,bi->b', error, error).mean()",
    "over the features": "torch.mean(torch.sum(error ** 2, dim=1))",
    "of weights": "error.pow(2).mean() + torch.dot(model.weight.flatten(), model.weight.flatten())",
    "of a layer by hand": "(x @ model.weight.T - y).pow(2).mean()",
}
STATISTICS = {"a norm": "torch.linalg.vector_norm(error)", "a soft largest": "torch.logsumexp(error, 0).mean()"}


def _told(convert_text, programs, loss):
    report, result = convert_text(programs({"batch": BATCH, "backward": f"loss = {loss}\nloss.backward()"})[0])
    assert "accelerator.prepare(" in result
    return [finding.message for finding in report.findings if finding.message.startswith("this loss ")]


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_is_told(convert_text, programs, name):
    (told,) = _told(convert_text, programs, SUMS[name])
    assert told.startswith("this loss is a sum")


@pytest.mark.parametrize("name", STATISTICS)
def test_a_statistic_is_told(convert_text, programs, name):
    (told,) = _told(convert_text, programs, STATISTICS[name])
    assert told.startswith("this loss goes on with a statistic of the batch")


@pytest.mark.parametrize("name", MEANS)
def test_a_mean_is_not(convert_text, programs, name):
    assert _told(convert_text, programs, MEANS[name]) == []
