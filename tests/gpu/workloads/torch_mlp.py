"""A multi-layer perceptron with dropout, trained with Adam."""
import harness
import training

harness.quiet_environment()


def main():
    opts = harness.options(default_steps=60)
    torch = harness.torch_deterministic()
    nn = torch.nn
    layers = []
    for _ in range(6):
        layers += [nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.1)]
    model = nn.Sequential(*layers, nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = [torch.randn(128, 512, device="cuda") for _ in range(8)]
    labels = [torch.randint(0, 10, (128,), device="cuda") for _ in range(8)]
    criterion = nn.CrossEntropyLoss()

    def loss_of(i):
        return criterion(model(data[i % 8]), labels[i % 8])

    training.train("torch_mlp", opts, torch, model, optimizer, loss_of)


if __name__ == "__main__":
    main()
