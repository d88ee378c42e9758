"""A text that is a device or a word of the settings, "auto": batches are where the model is, whatever it says."""

PROGRAM = """
    import sys
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    class Config:
        device = "auto"
        rate = 0.1

        def merge(self, arguments):
            for argument in arguments:
                key, value = argument.split("=")
                setattr(self, key, value)


    class Trainer:
        def __init__(self, config, model, data):
            self.config, self.model, self.data = config, model, data
            if config.device == "auto":
                self.device = "cuda" if torch.cuda.is_available() else "cpu"
            else:
                self.device = config.device
            self.model = self.model.to(self.device)
            print("running on", self.device)

        def run(self):
            model = self.model
            optimizer = torch.optim.SGD(model.parameters(), lr=self.config.rate)
            loader = DataLoader(self.data, batch_size=8)
            for epoch in range(2):
                for batch in loader:
                    batch = [part.to(self.device) for part in batch]
                    x, y = batch
                    loss = nn.functional.mse_loss(model(x), y)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()


    config = Config()
    config.merge(sys.argv[1:])
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
    trainer = Trainer(config, nn.Linear(4, 1), data)
    trainer.run()
"""


def test_batches_are_not_taken_away_from_the_model(convert_text):
    report, text = convert_text(PROGRAM)
    assert "part.to(" not in text
    assert "self.device = config.device" in text, "the program prints it"
    (told,) = [f for f in report.findings if "self.device no longer chooses" in f.message]
    assert told.code == "MIG101"
    assert "runtime launch --cpu" in told.hint
