"""An `__init__` that enters the method which prepares: what it calls above has the model itself."""

PROGRAM = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    class Autoencoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Linear(4, 2), nn.Linear(2, 4)

        def forward(self, x):
            return self.decoder(self.encoder(x))


    class Trainer:
        def __init__(self, rate):
            self.model = Autoencoder()
            {entered}

        def configure(self, rate):
            groups = [*self.model.encoder.parameters(), *self.model.decoder.parameters()]
            return torch.optim.SGD(groups, lr=rate)

        def train(self):
            loader = DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=8)
            for epoch in range(2):
                for (x,) in loader:
                    loss = (self.model(x) - x).pow(2).mean()
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
            {end}


    torch.manual_seed(0)
    Trainer(0.1)
"""
ABOVE = "self.optimizer = self.configure(rate)\n            self.train()"
RAW = "groups = [*self.model.encoder.parameters(), *self.model.decoder.parameters()]"


def test_what_is_called_above_has_the_model_itself(convert_text):
    _, text = convert_text(PROGRAM.format(entered=ABOVE, end=""))
    assert "self.model, self.optimizer = self.accelerator.prepare(" in text.replace("loader, ", "")
    assert RAW in text


def test_what_is_called_below_as_well_takes_it_out(convert_text):
    _, text = convert_text(PROGRAM.format(entered=ABOVE, end="print(self.configure(0.1))"))
    assert "accelerator.prepare(" in text
    assert "self.accelerator.unwrap_model(self.model).encoder.parameters()" in text


def test_a_method_that_is_entered_before_has_prepared_it(convert_text):
    report, text = convert_text(PROGRAM.format(entered=f"{ABOVE}\n            self.configure(rate)", end=""))
    assert not report.changes or RAW not in text
