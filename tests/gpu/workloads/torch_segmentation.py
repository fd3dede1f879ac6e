"""A small U-shaped convolutional network for segmentation, trained with SGD."""
import harness
import layers
import training

harness.quiet_environment()


def build(torch):
    nn = torch.nn

    def pair(inputs, outputs):
        return layers.conv_pair(nn, inputs, outputs)

    class Model(nn.Module):
        """Strided convolutions instead of pooling: their backward has no atomic additions."""

        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([pair(3, 16), pair(32, 32), pair(64, 64)])
            self.shrink = nn.ModuleList([nn.Conv2d(16, 32, 2, stride=2),
                                         nn.Conv2d(32, 64, 2, stride=2)])
            self.grow = nn.ModuleList([nn.ConvTranspose2d(64, 32, 2, stride=2),
                                       nn.ConvTranspose2d(32, 16, 2, stride=2)])
            self.up = nn.ModuleList([pair(64, 32), pair(32, 16)])
            self.head = nn.Conv2d(16, 1, 1)

        def forward(self, x):
            first = self.down[0](x)
            second = self.down[1](self.shrink[0](first))
            third = self.down[2](self.shrink[1](second))
            y = self.up[0](torch.cat([second, self.grow[0](third)], 1))
            y = self.up[1](torch.cat([first, self.grow[1](y)], 1))
            return self.head(y)

    return Model()


def main():
    opts = harness.options(default_steps=30)
    torch = harness.torch_deterministic()
    model = build(torch).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    images = [torch.randn(4, 3, 96, 96, device="cuda") for _ in range(8)]
    masks = [(torch.rand(4, 1, 96, 96, device="cuda") > 0.5).float() for _ in range(8)]
    criterion = torch.nn.BCEWithLogitsLoss()

    def loss_of(i):
        return criterion(model(images[i % 8]), masks[i % 8])

    training.train("torch_segmentation", opts, torch, model, optimizer, loss_of)


if __name__ == "__main__":
    main()
