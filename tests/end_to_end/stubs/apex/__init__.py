"""What originals need of apex where there is no GPU: there it has nothing to do."""

from . import amp, parallel  # noqa: F401 (as apex has it)
