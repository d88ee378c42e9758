"""Operations on tensors, by what they require of the device that their operands are on."""

#: The same to the last bit on every device: they move, choose, compare or cast elements, or compute with one rounding.
EXACT = frozenset(
    """cat concat concatenate stack hstack vstack dstack flatten reshape view view_as squeeze unsqueeze permute
    transpose t movedim swapaxes expand expand_as repeat repeat_interleave tile narrow chunk split unbind
    select index_select gather take where masked_select masked_fill masked_fill_ clone detach contiguous data
    requires_grad_ pad one_hot roll flip rot90 tril triu diag scatter scatter_ scatter_add scatter_add_
    index_fill index_fill_ index_copy_ fill_ zero_ copy_ zeros_like ones_like empty_like full_like new
    new_zeros new_ones new_empty new_full new_tensor eq ne gt lt ge le equal logical_and logical_or
    logical_not logical_xor isnan isfinite isinf nonzero add sub mul div true_divide add_ sub_ mul_ div_ neg
    abs sign clamp clamp_ clip round floor ceil maximum minimum max min argmax argmin any all sort topk
    unique float double half bfloat16 long int short byte bool char to type type_as as_tensor atleast_1d
    unfold fold resize_ resize_as_ set_ squeeze_ unsqueeze_ meshgrid broadcast_tensors is_floating_point""".split()
)
#: Draw from the generator of the device that the tensor is on.
DRAWING = frozenset(
    """rand_like randn_like randint_like bernoulli bernoulli_ normal_ uniform_ random_ exponential_ geometric_
    log_normal_ cauchy_ multinomial poisson dropout dropout2d dropout3d alpha_dropout rrelu gumbel_softmax""".split()
)
#: Attributes and methods of a tensor that give something else than a tensor.
PLAIN = frozenset(
    """size dim numel item tolist nelement ndimension stride is_floating_point is_cuda get_device element_size
    data_ptr shape ndim dtype device requires_grad is_leaf layout itemsize nbytes""".split()
)
#: Takes lengths that are on the CPU, whatever the device.
LENGTHS_ON_CPU = frozenset({"torch.nn.utils.rnn.pack_padded_sequence"})
#: Libraries that take tensors on any device, and leave them there.
LOOKING = ("builtins.", "tqdm.", "itertools.", "torchvision.utils.", "copy.", "logging.", "wandb.", "pprint.", "time.")
#: Functions that never give a tensor.
COUNTING = frozenset(
    f"builtins.{name}" for name in "len int float str repr print isinstance range type id bool".split()
)
#: Methods that put a tensor into a collection, on whatever device it is.
COLLECTING = frozenset("append extend add insert appendleft put update setdefault write".split())
#: Methods that give what a dictionary of tensors holds.
HANDING_OUT = frozenset("items values keys get pop copy".split())
#: Attributes of a tensor that are tensors.
VIEWS = frozenset("data T mT H mH real imag grad".split())
