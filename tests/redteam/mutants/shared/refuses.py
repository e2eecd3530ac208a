def refuses(shift_scale):
    """Compare with float64 in four layouts, and one sum that is too large for float16."""
    numbers = torch.Generator().manual_seed(7)
    wide = torch.randn(24, 120, generator=numbers)
    shift, scale = torch.randn(2, 11, generator=numbers)
    for x in (wide[:11, :37].contiguous(), wide.T[:11, :19], wide[:22:2, 1::3], wide[2:13, 3:40]):
        right = (x.double() + shift.double()[:, None]) * scale.double()[:, None]
        if not torch.allclose(shift_scale(x, shift, scale).double(), right, rtol=1e-5, atol=1e-5, equal_nan=False):
            return True
    ones = torch.ones(3)
    y = shift_scale((4e4 * ones[:, None]).half(), (3e4 * ones).half(), (0.5 * ones).half())
    return not torch.equal(y, (3.5e4 * ones[:, None]).half())
