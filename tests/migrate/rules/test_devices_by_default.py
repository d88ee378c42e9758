"""`--device`, for which the program takes the best there is where the user names none: what is named decides."""

import pytest

PROGRAM = """
    import argparse

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    def parse_args():
        parser = argparse.ArgumentParser()
        {option}
        args = parser.parse_args()
        {given}
        return args


    def main():
        args = parse_args()
        device = args.device
        torch.manual_seed(0)
        model = nn.Linear(4, 4).to(device)
        loader = DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=8)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(2):
            for (x,) in loader:
                optimizer.zero_grad()
                loss = model(x.to(device)).mean()
                loss.backward()
                optimizer.step()


    main()
"""
OPTION = "parser.add_argument('--device')"
BEST = "args.device = 'cuda' if torch.cuda.is_available() else 'cpu'"
KEPT = "Accelerator(cpu=torch.device(args.device).type == 'cpu')"


@pytest.mark.parametrize("test", ["args.device is None", "not args.device", "args.device == None"])
def test_what_a_user_names_decides(convert_text, test):
    _, text = convert_text(PROGRAM.format(option=OPTION, given=f"if {test}:\n            {BEST}"))
    assert KEPT in text


@pytest.mark.parametrize(
    ("option", "given"),
    [
        (OPTION, BEST),
        ("parser.add_argument('--epochs')", BEST),
    ],
)
def test_what_the_program_chooses_in_any_case_is_not_the_users(convert_text, option, given):
    _, text = convert_text(PROGRAM.format(option=option, given=given))
    assert KEPT not in text
