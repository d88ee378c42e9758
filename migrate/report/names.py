"""What names are often given to: a guess for those who ask, never a fact."""

from __future__ import annotations

from migrate.analysis.roles import Role

_NAMES = {
    Role.MODEL: "model net network module encoder decoder generator discriminator backbone",
    Role.OPTIMIZER: "optimizer optim opt",
    Role.SCHEDULER: "scheduler sched lr_scheduler",
    Role.LOADER: "loader dataloader data_loader train_loader val_loader test_loader trainloader testloader",
    Role.CRITERION: "criterion loss_fn loss_function",
    Role.DATASET: "dataset train_set test_set trainset testset",
    Role.DEVICE: "device",
}
_ROLES = {name: role for role, names in _NAMES.items() for name in names.split()}


def guessed(name: str) -> Role | None:
    """What a variable or attribute of that name may be for, by its name alone."""
    return _ROLES.get(name.rpartition(".")[2].lower())
