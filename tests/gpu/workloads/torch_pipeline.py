"""A segmentation network with a frozen encoder: the decoder trains, and with --overlap the encoder is one batch ahead in
a second stream."""
import ahead
import harness
import layers
import training

harness.quiet_environment()


def build(torch):
    nn = torch.nn

    def pair(inputs, outputs):
        return layers.conv_pair(nn, inputs, outputs)

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.levels = nn.ModuleList([pair(3, 32), pair(64, 64), pair(128, 128)])
            self.shrink = nn.ModuleList([nn.Conv2d(32, 64, 2, stride=2),
                                         nn.Conv2d(64, 128, 2, stride=2)])

        def forward(self, x):
            first = self.levels[0](x)
            second = self.levels[1](self.shrink[0](first))
            return first, second, self.levels[2](self.shrink[1](second))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.grow = nn.ModuleList([nn.ConvTranspose2d(128, 64, 2, stride=2),
                                       nn.ConvTranspose2d(64, 32, 2, stride=2)])
            self.up = nn.ModuleList([pair(128, 64), pair(64, 32)])
            self.head = nn.Conv2d(32, 1, 1)

        def forward(self, first, second, third):
            y = self.up[0](torch.cat([second, self.grow[0](third)], 1))
            y = self.up[1](torch.cat([first, self.grow[1](y)], 1))
            return self.head(y)

    return Encoder(), Decoder()


def main():
    opts = harness.options(default_steps=30, overlap=True, batch=4)
    torch = harness.torch_deterministic()
    encoder, decoder = (part.cuda() for part in build(torch))
    encoder.eval().requires_grad_(False)
    optimizer = torch.optim.SGD(decoder.parameters(), lr=0.01, momentum=0.9)
    images = [torch.randn(opts.batch, 3, 96, 96, device="cuda") for _ in range(8)]
    masks = [(torch.rand(opts.batch, 1, 96, 96, device="cuda") > 0.5).float() for _ in range(8)]
    criterion = torch.nn.BCEWithLogitsLoss()

    def encode(i):
        with torch.no_grad():
            return encoder(images[i % 8])

    features = ahead.Ahead(torch, encode, opts.overlap)

    def loss_of(i):
        return criterion(decoder(*features.get(i)), masks[i % 8])

    training.train("torch_pipeline", opts, torch, decoder, optimizer, loss_of)


if __name__ == "__main__":
    main()
