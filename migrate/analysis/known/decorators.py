"""Decorators of libraries that leave a function what it is: it is called with what its callers pass."""

KEEPING = frozenset(
    "builtins.staticmethod builtins.classmethod abc.abstractmethod "
    "contextlib.contextmanager contextlib.asynccontextmanager "
    "functools.cache functools.lru_cache functools.wraps "
    "typing.final typing.no_type_check typing.overload typing.override typing_extensions.override "
    "torch.no_grad torch.enable_grad torch.inference_mode torch.set_grad_enabled torch.autograd.no_grad "
    "torch.autograd.grad_mode.no_grad torch.autocast torch.amp.autocast torch.cuda.amp.autocast torch.compile "
    "torch.distributed.elastic.multiprocessing.errors.record "
    "torch.profiler.record_function torch.autograd.profiler.record_function".split()
)

#: Functions that read a function's name and text, and do not call it.
LOOKING = frozenset({"functools.wraps", "functools.update_wrapper", "inspect.getsource", "inspect.signature"})
