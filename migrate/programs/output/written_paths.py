"""The paths of the files that calls write."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.syntax import argument_at
from migrate.programs.values.outputs import Outputs

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts

#: The position of the path among the arguments of what writes.
_WRITTEN = (
    {"torch.onnx.export": 2}
    | dict.fromkeys(
        """torch.save torchvision.utils.save_image pickle.dump joblib.dump sklearn.externals.joblib.dump nibabel.save
    omegaconf.OmegaConf.save SimpleITK.WriteImage""".split(),
        1,
    )
    | dict.fromkeys(
        """numpy.save numpy.savez numpy.savez_compressed numpy.savetxt scipy.sparse.save_npz tifffile.imwrite
    matplotlib.pyplot.savefig""".split(),
        0,
    )
)
#: Methods that write to the path that they are given.
_WRITTEN_BY = frozenset({"to_csv", "to_pickle", "save_pretrained"})


def written_path(facts: Facts, call: ast.Call) -> ast.expr | None:
    """The path of the file that a call writes; None where it writes none, or into memory."""
    outputs = facts.once(Outputs)
    if outputs.is_in_memory(call):
        return None
    if outputs.opens(call):
        return argument_at(call, 0, *output.PATHS) if facts.called(call) else None
    positions = {_WRITTEN[name] for name in facts.called(call) & _WRITTEN.keys()}
    if isinstance(call.func, ast.Attribute) and call.func.attr in _WRITTEN_BY:
        positions = {0}
    return next((argument_at(call, position, *output.PATHS) for position in positions), None)
