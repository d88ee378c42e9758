"""Queues of keys that a loss compares with: `migrate/programs/training/queues.py`."""

import pytest

from migrate.report.model import Kind

QUEUE = "queue = torch.cat((queue, output.detach()), dim=0)[output.size(0):]"
AGAINST = "loss = loss + (output @ queue.t()).exp().mean()\nloss.backward()"
CASES = {
    "a queue": ({"made": "queue = torch.zeros(8, 1)", "backward": AGAINST, "step": QUEUE}, ["queue = torch.cat"]),
    "what only collects": ({"made": "queue = torch.zeros(8, 1)", "step": QUEUE}, []),
    "of something else": (
        {"made": "queue = torch.zeros(8, 1)", "backward": AGAINST, "step": "queue = torch.cat((queue, queue))[8:]"},
        [],
    ),
    "begun anew in each step": (
        {
            "batch": "queue = None",
            "backward": "for part in output:\n    queue = torch.cat((queue, part)) if queue is not None else part\n"
            "loss = loss + queue.mean()\nloss.backward()",
        },
        [],
    ),
    "begun anew with zeros": (
        {
            "batch": "queue = torch.zeros_like(y).float()",
            "backward": "queue = torch.cat([y, queue], dim=0)\nloss = loss + queue.mean()\nloss.backward()",
        },
        [],
    ),
    "given by the loop": (
        {"backward": "y = torch.cat([y, output])\nloss = loss + y.mean()\nloss.backward()"},
        [],
    ),
    "begun anew beside another": (
        {
            "batch": "first, queue = x[:1], y.float()",
            "backward": "queue = torch.cat([queue, output])\nloss = loss + queue.mean()\nloss.backward()",
        },
        [],
    ),
    "begun anew with a part of the batch": (
        {
            "batch": "queue = (y.float() - 1).clamp(min=0)",
            "backward": "queue = torch.cat([queue, output])\nloss = loss + queue.mean()\nloss.backward()",
        },
        [],
    ),
    "begun anew with what a function makes of the batch": (
        {
            "setup": "def weights(rows):\n    return rows.float().abs()",
            "batch": "queue = weights(y)",
            "backward": "queue = torch.cat([queue, output])\nloss = loss + queue.mean()\nloss.backward()",
        },
        [],
    ),
    "begun anew in a branch": (
        {
            "backward": "if epoch:\n    queue = y.float()\n    queue = torch.cat([queue, output])\n"
            "    loss = loss + queue.mean()\nloss.backward()",
        },
        [],
    ),
    "taken from what keeps it": (
        {
            "made": "kept = {'queue': torch.zeros(8, 1)}",
            "batch": "queue = kept['queue']",
            "backward": AGAINST,
            "step": QUEUE + "\nkept['queue'] = queue",
        },
        ["queue = torch.cat"],
    ),
    "another tensor each time": (
        {"batch": "queue = torch.zeros(8, 1)", "backward": AGAINST, "step": QUEUE.replace("queue = ", "kept = ")},
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_queue_of_one_process_s_batches_is_told(convert_text, programs, name):
    holes, at = CASES[name]
    source = programs(holes)[0]
    report, result = convert_text(source)

    lines = source.splitlines()
    told = [f for f in report.of(Kind.NOTE) if "which each process fills from its own batches only" in f.message]
    assert "accelerator.backward(loss)" in result
    assert [lines[f.line - 1].strip()[: len(at[0])] for f in told] == at if at else not told
