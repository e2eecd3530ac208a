"""What Triton's compiler made of the kernels of a chapter; written by scripts/compile_stages.py."""

# ruff: noqa: E501 - lines are as long as the compiler writes them
# fmt: off

VERSIONS = {'Triton': '3.7.1', 'ptxas': '12.8', 'target': 'sm_90'}

KERNEL = """\
@triton.jit
def scale_shift_relu(x_ptr, y_ptr, scale, shift, N, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < N
    x = tl.load(x_ptr + index, mask=inside, other=0.0)
    y = tl.maximum(x * scale + shift, 0.0)
    tl.store(y_ptr + index, y, mask=inside)
"""

TILED = """\
@triton.jit
def bias_relu(
    x_ptr, bias_ptr, y_ptr, gain, rows, cols,
    x_row, x_col, y_row, y_col,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)[None, :]
    inside = (col < cols) & (row < rows)
    x_place = x_ptr + row * x_row + col * x_col
    x = tl.load(x_place, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + col, mask=col < cols, other=0.0)
    y = gain * tl.maximum(x + bias.to(tl.float32), 0.0)
    y_place = y_ptr + row * y_row + col * y_col
    tl.store(y_place, y.to(y_ptr.dtype.element_ty), mask=inside)
"""

STAGES: dict[str, list[tuple[int | None, str]]] = {
    'TTIR': [
        (None, 'module {'),
        (2, '  tt.func public @scale_shift_relu(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32},'),
        (2, '      %y_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32},'),
        (2, '      %scale: f32,'),
        (2, '      %shift: f32,'),
        (2, '      %N: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {'),
        (None, '    %cst = arith.constant dense<0.000000e+00> : tensor<512xf32>'),
        (None, '    %c512_i32 = arith.constant 512 : i32'),
        (3, '    %index = tt.get_program_id x : i32'),
        (3, '    %index_0 = arith.muli %index, %c512_i32 : i32'),
        (3, '    %index_1 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>'),
        (3, '    %index_2 = tt.splat %index_0 : i32 -> tensor<512xi32>'),
        (3, '    %index_3 = arith.addi %index_2, %index_1 : tensor<512xi32>'),
        (4, '    %inside = tt.splat %N : i32 -> tensor<512xi32>'),
        (4, '    %inside_4 = arith.cmpi slt, %index_3, %inside : tensor<512xi32>'),
        (5, '    %x = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>'),
        (5, '    %x_5 = tt.addptr %x, %index_3 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>'),
        (5, '    %x_6 = tt.load %x_5, %inside_4, %cst : tensor<512x!tt.ptr<f32>>'),
        (6, '    %y = tt.splat %scale : f32 -> tensor<512xf32>'),
        (6, '    %y_7 = arith.mulf %x_6, %y : tensor<512xf32>'),
        (6, '    %y_8 = tt.splat %shift : f32 -> tensor<512xf32>'),
        (6, '    %y_9 = arith.addf %y_7, %y_8 : tensor<512xf32>'),
        (6, '    %y_10 = arith.maxnumf %y_9, %cst : tensor<512xf32>'),
        (7, '    %0 = tt.splat %y_ptr : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>'),
        (7, '    %1 = tt.addptr %0, %index_3 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>'),
        (7, '    tt.store %1, %y_10, %inside_4 : tensor<512x!tt.ptr<f32>>'),
        (7, '    tt.return'),
        (None, '  }'),
        (None, '}'),
    ],
    'TTGIR': [
        (None, '#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>'),
        (None, 'module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {'),
        (2, '  tt.func public @scale_shift_relu(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32},'),
        (2, '      %y_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32},'),
        (2, '      %scale: f32,'),
        (2, '      %shift: f32,'),
        (2, '      %N: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {'),
        (None, '    %cst = arith.constant dense<0.000000e+00> : tensor<512xf32, #blocked>'),
        (None, '    %c512_i32 = arith.constant 512 : i32'),
        (3, '    %index = tt.get_program_id x : i32'),
        (3, '    %index_0 = arith.muli %index, %c512_i32 : i32'),
        (3, '    %index_1 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>'),
        (3, '    %index_2 = tt.splat %index_0 : i32 -> tensor<512xi32, #blocked>'),
        (3, '    %index_3 = arith.addi %index_2, %index_1 : tensor<512xi32, #blocked>'),
        (4, '    %inside = tt.splat %N : i32 -> tensor<512xi32, #blocked>'),
        (4, '    %inside_4 = arith.cmpi slt, %index_3, %inside : tensor<512xi32, #blocked>'),
        (5, '    %x = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #blocked>'),
        (5, '    %x_5 = tt.addptr %x, %index_3 : tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xi32, #blocked>'),
        (5, '    %x_6 = tt.load %x_5, %inside_4, %cst : tensor<512x!tt.ptr<f32>, #blocked>'),
        (6, '    %y = tt.splat %scale : f32 -> tensor<512xf32, #blocked>'),
        (6, '    %y_7 = arith.mulf %x_6, %y : tensor<512xf32, #blocked>'),
        (6, '    %y_8 = tt.splat %shift : f32 -> tensor<512xf32, #blocked>'),
        (6, '    %y_9 = arith.addf %y_7, %y_8 : tensor<512xf32, #blocked>'),
        (6, '    %y_10 = arith.maxnumf %y_9, %cst : tensor<512xf32, #blocked>'),
        (7, '    %0 = tt.splat %y_ptr : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #blocked>'),
        (7, '    %1 = tt.addptr %0, %index_3 : tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xi32, #blocked>'),
        (7, '    tt.store %1, %y_10, %inside_4 : tensor<512x!tt.ptr<f32>, #blocked>'),
        (7, '    tt.return'),
        (None, '  }'),
        (None, '}'),
    ],
    'PTX': [
        (None, '.visible .entry scale_shift_relu('),
        (None, '    .param .u64 .ptr .global .align 1 scale_shift_relu_param_0,'),
        (None, '    .param .u64 .ptr .global .align 1 scale_shift_relu_param_1,'),
        (None, '    .param .f32 scale_shift_relu_param_2,'),
        (None, '    .param .f32 scale_shift_relu_param_3,'),
        (None, '    .param .u32 scale_shift_relu_param_4,'),
        (None, '    .param .u64 .ptr .global .align 1 scale_shift_relu_param_5,'),
        (None, '    .param .u64 .ptr .global .align 1 scale_shift_relu_param_6'),
        (None, ')'),
        (None, '{'),
        (None, '    .reg .pred  %p<2>;'),
        (None, '    .reg .b32   %r<23>;'),
        (None, '    .reg .b64   %rd<6>;'),
        (2, '    ld.param.b64    %rd3, [scale_shift_relu_param_0];'),
        (2, '    ld.param.b64    %rd4, [scale_shift_relu_param_1];'),
        (3, '    mov.u32     %r10, %ctaid.x;'),
        (3, '    shl.b32     %r11, %r10, 9;'),
        (3, '    ld.param.b32    %r12, [scale_shift_relu_param_2];'),
        (3, '    ld.param.b32    %r13, [scale_shift_relu_param_3];'),
        (3, '    mov.u32     %r14, %tid.x;'),
        (3, '    shl.b32     %r15, %r14, 2;'),
        (3, '    ld.param.b32    %r16, [scale_shift_relu_param_4];'),
        (3, '    and.b32     %r17, %r15, 508;'),
        (3, '    or.b32  %r18, %r17, %r11;'),
        (4, '    setp.lt.s32     %p1, %r18, %r16;'),
        (5, '    mul.wide.s32    %rd5, %r18, 4;'),
        (5, '    add.s64     %rd1, %rd3, %rd5;'),
        (5, '    mov.b32     %r5, 0;'),
        (5, '    mov.u32 %r1, %r5;'),
        (5, '    mov.u32 %r2, %r5;'),
        (5, '    mov.u32 %r3, %r5;'),
        (5, '    mov.u32 %r4, %r5;'),
        (5, '    @%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];'),
        (6, '    fma.rn.f32  %r19, %r12, %r1, %r13;'),
        (6, '    fma.rn.f32  %r20, %r12, %r2, %r13;'),
        (6, '    fma.rn.f32  %r21, %r12, %r3, %r13;'),
        (6, '    fma.rn.f32  %r22, %r12, %r4, %r13;'),
        (6, '    max.f32     %r6, %r19, 0f00000000;'),
        (6, '    max.f32     %r7, %r20, 0f00000000;'),
        (6, '    max.f32     %r8, %r21, 0f00000000;'),
        (6, '    max.f32     %r9, %r22, 0f00000000;'),
        (7, '    add.s64     %rd2, %rd4, %rd5;'),
        (7, '    @%p1 st.global.v4.b32 [ %rd2 + 0 ], { %r6, %r7, %r8, %r9 };'),
        (7, '    ret;'),
        (None, '}'),
    ],
    'SASS': [
        (2, '0000  LDC R1, c[0x0][0x28]'),
        (3, '0010  S2R R0, SR_TID.X'),
        (5, '0020  LDC.64 R2, c[0x0][0x210]'),
        (4, '0030  ULDC UR4, c[0x0][0x228]'),
        (5, '0040  CS2R R4, SRZ'),
        (3, '0050  S2R R11, SR_CTAID.X'),
        (5, '0060  CS2R R6, SRZ'),
        (6, '0070  LDC.64 R12, c[0x0][0x220]'),
        (7, '0080  LDC.64 R8, c[0x0][0x218]'),
        (3, '0090  IMAD.SHL.U32 R0, R0, 0x4, RZ'),
        (3, '00a0  LOP3.LUT R0, R0, 0x1fc, RZ, 0xc0, !PT'),
        (3, '00b0  IMAD R11, R11, 0x200, R0'),
        (5, '00c0  IMAD.WIDE R2, R11.reuse, 0x4, R2'),
        (4, '00d0  ISETP.GE.AND P0, PT, R11, UR4, PT'),
        (4, '00e0  ULDC.64 UR4, c[0x0][0x208]'),
        (5, '00f0  @!P0 LDG.E.128 R4, desc[UR4][R2.64]'),
        (6, '0100  FFMA R10, R5, R12.reuse, R13.reuse'),
        (6, '0110  FFMA R0, R4, R12.reuse, R13.reuse'),
        (6, '0120  FFMA R6, R6, R12.reuse, R13.reuse'),
        (6, '0130  FFMA R7, R7, R12, R13'),
        (7, '0140  IMAD.WIDE R4, R11, 0x4, R8'),
        (6, '0150  FMNMX R9, RZ, R10, !PT'),
        (6, '0160  FMNMX R8, RZ, R0, !PT'),
        (6, '0170  FMNMX R10, RZ, R6, !PT'),
        (6, '0180  FMNMX R11, RZ, R7, !PT'),
        (7, '0190  @P0 EXIT'),
        (7, '01a0  STG.E.128 desc[UR4][R4.64], R8'),
        (7, '01b0  EXIT'),
    ],
}
"""The lines of each form, each with the line of `KERNEL` that it was made from, counted from 1."""

VARIANTS: dict[str, dict[str, list[str]]] = {
    'the kernel as it is': {
        'layouts': ['{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}'],
        'loads': ['ld.global.v4.b32'],
        'stores': ['st.global.v4.b32'],
    },
    'BLOCK = 2048': {
        'layouts': ['{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}'],
        'loads': ['ld.global.v4.b32', 'ld.global.v4.b32', 'ld.global.v4.b32', 'ld.global.v4.b32'],
        'stores': ['st.global.v4.b32', 'st.global.v4.b32', 'st.global.v4.b32', 'st.global.v4.b32'],
    },
    '8 warps': {
        'layouts': ['{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}'],
        'loads': ['ld.global.v2.b32'],
        'stores': ['st.global.v2.b32'],
    },
    'float16 vectors': {
        'layouts': ['{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}'],
        'loads': ['ld.global.v2.b32'],
        'stores': ['st.global.v2.b32'],
    },
    'N = 1,000,003': {
        'layouts': ['{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}'],
        'loads': ['ld.global.b32', 'ld.global.b32', 'ld.global.b32', 'ld.global.b32'],
        'stores': ['st.global.b32', 'st.global.b32', 'st.global.b32', 'st.global.b32'],
    },
    'index * stride': {
        'layouts': ['{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}'],
        'loads': ['ld.global.b32', 'ld.global.b32', 'ld.global.b32', 'ld.global.b32'],
        'stores': ['st.global.b32', 'st.global.b32', 'st.global.b32', 'st.global.b32'],
    },
    'tile': {
        'layouts': ['{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}'],
        'loads': ['ld.global.v4.b32', 'ld.global.v4.b32'],
        'stores': ['st.global.v4.b32'],
    },
}
"""Layouts and accesses to memory of the kernel, and of what is made from it by one change."""
