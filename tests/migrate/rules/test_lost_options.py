"""Options that go with what several processes asked for: command lines that pass one are said to end in an error."""

import pytest

PROGRAM = """
    import argparse

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler

    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--local_rank", "--local-rank", type=int, default=0)
    parser.add_argument("-u", "--dist-url", default="env://")
    args = {parsed}
    {used}
    dist.init_process_group("gloo", init_method=args.dist_url)
    torch.manual_seed(0)
    data = TensorDataset(torch.ones(16, 2), torch.zeros(16, 1))
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
    model = DistributedDataParallel(nn.Linear(2, 1).cuda(args.local_rank), device_ids=[args.local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x.cuda(args.local_rank)), y.cuda(args.local_rank))
        loss.backward()
        optimizer.step()
"""
PARSED = "parser.parse_args()"


def told(report):
    return [finding.message for finding in report.findings if finding.message.startswith("command lines")]


@pytest.mark.parametrize(
    ("used", "flags"),
    [("pass", "--local_rank or --dist-url"), ("print(args.dist_url)", "--local_rank")],
)
def test_those_that_go_are_named(convert_text, used, flags):
    report, result = convert_text(PROGRAM.format(parsed=PARSED, used=used))

    assert told(report) == [f"command lines that pass {flags} end in an error: nothing reads that any more"]
    assert '"--local_rank"' not in result
    (place,) = (f.line for f in report.findings if f.message in told(report))
    assert place == 12


def test_nothing_is_said_where_all_of_them_stay(convert_text):
    source = PROGRAM.format(parsed=PARSED, used="print(args.dist_url)").replace("args.local_rank", "0")
    lines = [line for line in source.splitlines() if "--local_rank" not in line]
    report, result = convert_text("\n".join(lines))

    assert '"--dist-url"' in result
    assert not told(report)


def test_who_takes_what_is_known_takes_the_others_as_well(convert_text):
    report, _ = convert_text(PROGRAM.format(parsed="parser.parse_known_args()[0]", used="pass"))

    assert report.changes
    assert not told(report)
