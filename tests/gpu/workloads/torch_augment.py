"""A classifier trained on images that are augmented on the GPU: flips, rotations, colours, noise; with --overlap one batch
ahead in a second stream."""
import ahead
import harness
import training

harness.quiet_environment()


def augmented(torch, raw, dice):
    """A batch of bytes as normalised floats: turned a little, mirrored or not, of other brightness, noisy."""
    n = raw.shape[0]

    def roll(low, high):
        return torch.empty(n, 1, 1, 1, device="cuda").uniform_(low, high, generator=dice)

    x = raw.float() / 255
    angle = roll(-0.3, 0.3).view(n)
    cos, sin, zero = torch.cos(angle), torch.sin(angle), torch.zeros_like(angle)
    turn = torch.stack([torch.stack([cos, -sin, zero], 1), torch.stack([sin, cos, zero], 1)], 1)
    grid = torch.nn.functional.affine_grid(turn, list(x.shape), align_corners=False)
    x = torch.nn.functional.grid_sample(x, grid, align_corners=False)
    x = torch.where(roll(0, 1) < 0.5, x, x.flip(3))
    mean = x.mean((1, 2, 3), keepdim=True)
    x = (x - mean) * roll(0.7, 1.3) + mean * roll(0.7, 1.3)
    x = x + 0.02 * torch.empty_like(x).normal_(generator=dice)
    return ((x - 0.45) / 0.25,)


def main():
    opts = harness.options(default_steps=30, overlap=True, batch=32)
    torch = harness.torch_deterministic()
    nn = torch.nn
    layers = []
    for inputs, outputs in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False),
                   nn.BatchNorm2d(outputs), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 8 * 8, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    raw = [torch.randint(0, 256, (opts.batch, 3, 64, 64), device="cuda", dtype=torch.uint8)
           for _ in range(8)]
    labels = [torch.randint(0, 10, (opts.batch,), device="cuda") for _ in range(8)]
    dice = torch.Generator("cuda").manual_seed(7)
    criterion = nn.CrossEntropyLoss()
    batches = ahead.Ahead(torch, lambda i: augmented(torch, raw[i % 8], dice), opts.overlap)

    def loss_of(i):
        return criterion(model(*batches.get(i)), labels[i % 8])

    training.train("torch_augment", opts, torch, model, optimizer, loss_of)


if __name__ == "__main__":
    main()
