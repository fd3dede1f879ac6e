"""ResNet-18, inference, batch 1: every output is kept and compared."""
import harness

harness.quiet_environment()


def main():
    opts = harness.options(default_steps=60)
    torch = harness.torch_deterministic()
    import torchvision
    model = torchvision.models.resnet18(weights=None).cuda().eval()
    inputs = [torch.randn(1, 3, 224, 224, device="cuda") for _ in range(8)]
    outputs = []
    digest = harness.Digest()

    def step(i):
        outputs.append(model(inputs[i % len(inputs)]))

    def after_block():
        digest.torch(*outputs)
        outputs.clear()

    with torch.inference_mode():
        samples, steps = harness.blocks(opts, step, torch.cuda.synchronize, after_block)
    harness.report("torch_resnet18", samples, steps, {"outputs": digest},
                   torch.cuda.get_device_name())


if __name__ == "__main__":
    main()
