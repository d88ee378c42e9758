"""Bars that are moved on by the samples of a batch: each process sees its share of them."""

import pytest

IMPORT = "from tqdm import tqdm"
BARS = {
    "of the data": ("tqdm(total=len(data))", "bar.update(x.size(0))", True),
    "by a name": ("tqdm(total=len(data) - 2, desc='images')", "bar.update(len(x))", True),
    "a number": ("tqdm(total=8)", "bar.update(x.shape[0])", True),
    "of the batches": ("tqdm(total=len(loader))", "bar.update(1)", False),
    "as many as a process has": ("tqdm(total=len(loader) * 4)", "bar.update(len(x))", False),
    "without an end": ("tqdm()", "bar.update(len(x))", False),
}


@pytest.mark.parametrize("name", BARS)
def test_a_bar_that_counts_samples_is_told(convert_text, programs, name):
    bar, step, is_told = BARS[name]
    report, after = convert_text(programs({"imports": IMPORT, "start": f"bar = {bar}", "step": step})[0])

    assert after is not None
    assert is_told is any("bar shows one process's share" in finding.message for finding in report.findings)
