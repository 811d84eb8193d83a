/* Instructions without a shape, and the shape XLA (jaxlib 0.10.2) gives them in
 * the module below; then those that must be refused, with part of our message.
 * Where XLA takes no variadic reduce-window or scaled-dot without a shape, the
 * shape is what its verifier demands. */
/* clang-format off */
static const char preamble[] =
    "HloModule m" "\n"
    "add { " "\n"
    " x = f32[] parameter(0)" "\n"
    " y = f32[] parameter(1)" "\n"
    " ROOT a = f32[] add(x, y) }" "\n"
    "addb { " "\n"
    " bx = bf16[] parameter(0)" "\n"
    " by = bf16[] parameter(1)" "\n"
    " ROOT ba = bf16[] add(bx, by) }" "\n"
    "ge { " "\n"
    " gx = f32[] parameter(0)" "\n"
    " gy = f32[] parameter(1)" "\n"
    " ROOT gg = pred[] compare(gx, gy), direction=GE }" "\n"
    "add2 { " "\n"
    " x0 = f32[] parameter(0)" "\n"
    " x1 = f32[] parameter(1)" "\n"
    " y0 = f32[] parameter(2)" "\n"
    " y1 = f32[] parameter(3)" "\n"
    " a0 = f32[] add(x0, y0)" "\n"
    " a1 = f32[] add(x1, y1)" "\n"
    " ROOT a2 = (f32[], f32[]) tuple(a0, a1) }" "\n"
    "sc { " "\n"
    " k0 = f32[2] parameter(0)" "\n"
    " k1 = f32[2] parameter(1)" "\n"
    " k3 = f32[2] add(k0, k1)" "\n"
    " ROOT k4 = (f32[2], f32[2]) tuple(k3, k3) }" "\n"
    "cc { " "\n"
    " e0 = f32[2,3]{0,1} parameter(0)" "\n"
    " ROOT c1 = f32[2,3]{1,0} negate(e0) }" "\n"
    "cnd {" "\n"
    " cn0 = f32[2,3]{0,1} parameter(0)" "\n"
    " ROOT cn1 = pred[] constant(false) }" "\n"
    "lt2 {" "\n"
    " la = f32[] parameter(0)" "\n"
    " lb = f32[] parameter(1)" "\n"
    " lc = f32[] parameter(2)" "\n"
    " ld = f32[] parameter(3)" "\n"
    " ROOT le = pred[] compare(la, lb), direction=LT }" "\n"
    "ENTRY e {" "\n"
    " p = f32[4,5,6]{0,1,2} parameter(0)" "\n"
    " d = f32[<=4,<=5,6]{0,1,2} parameter(1)" "\n"
    " z = f32[] constant(0)" "\n"
    " n = s32[] constant(3)" "\n"
    " i = s32[7] parameter(2)" "\n"
    " id = s32[<=7] parameter(3)" "\n"
    " im = f32[2,8,8,6] parameter(4)" "\n"
    " imd = f32[<=2,8,<=8,6] parameter(5)" "\n"
    " ke = f32[3,3,3,4] parameter(6)" "\n"
    " sq = f32[4,5,5] parameter(7)" "\n"
    " ts = f32[4,5,3]{0,1,2} parameter(8)" "\n"
    " up = f32[7,5,6] parameter(9)" "\n"
    " upd = f32[<=7,5,6] parameter(10)" "\n"
    " gs = s32[3] parameter(11)" "\n"
    " l = f32[11,5] parameter(12)" "\n"
    " r = f32[3,5,7] parameter(13)" "\n"
    " j8 = s8[4,8] parameter(14)" "\n"
    " b16 = bf16[4,8] parameter(15)" "\n"
    " sx = f32[5,2] parameter(16)" "\n"
    " cin = f32[2] parameter(17)" "\n"
    " pb = bf16[4,5,6] parameter(18)" "\n"
    " zb = bf16[] constant(0)" "\n"
    " cp = f32[2,3]{0,1} parameter(19)" "\n"
    " pr = pred[] parameter(20)" "\n"
    " cx = c64[<=4,5,6] parameter(21)" "\n"
    " l2 = f32[4,11] parameter(22)" "\n"
    " r2 = f32[11,7] parameter(23)" "\n"
    " v6 = f32[6] parameter(24)" "\n"
    " sl = f32[4,4] parameter(25)" "\n"
    " q = f32[4,5,6]{1,0,2} parameter(27)" "\n"
    " n4 = s32[] constant(4)" "\n"
    " tk = token[] after-all()" "\n"
    " cx2 = c64[4,5]{0,1} parameter(28)" "\n"
    " ss = f32[4,1] parameter(26)" "\n"
    " tp = (f32[], f32[]) tuple(z, z)\n";

static const struct {
  const char *inst, *shape;
} inferred[] = {
    {"reduce(d, z), dimensions={1}, to_apply=add",
     "f32[<=4,6]{1,0}"},
    {"reduce(pb, z), dimensions={1}, to_apply=add",
     "f32[4,6]{1,0}"},
    {"reduce(pb, zb), dimensions={1}, to_apply=add",
     "f32[4,6]{1,0}"},
    {"reduce(pb, z), dimensions={1}, to_apply=addb",
     "bf16[4,6]{1,0}"},
    {"reduce(p, d, z, z), dimensions={1}, to_apply=add2",
     "(f32[4,6]{1,0}, f32[4,6]{1,0})"},
    {"reduce-window(p, z), window={size=1x2x2 stride=1x1x2}, to_apply=add",
     "f32[4,4,3]{2,1,0}"},
    {"reduce-window(d, z), window={size=1x2x2 stride=1x1x2}, to_apply=add",
     "f32[<=4,<=4,3]{2,1,0}"},
    {"reduce-window(d, z), window={size=2x1x2 stride=1x1x2 pad=1_1x0_0x0_0 lhs_dilate=2x1x1}, to_apply=add",
     "f32[<=8,<=5,3]{2,1,0}"},
    {"reduce-window(p, z), window={size=9x1x2}, to_apply=add",
     "f32[0,5,5]{2,1,0}"},
    {"reduce-window(p, z), window={size=1x2x2 rhs_dilate=1x2x3}, to_apply=add",
     "f32[4,3,3]{2,1,0}"},
    {"select-and-scatter(p, sq, z), window={size=1x1x2 stride=1x1x1}, select=ge, scatter=add",
     "f32[4,5,6]{0,1,2}"},
    {"convolution(im, ke), window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=2",
     "f32[2,6,6,4]{3,2,1,0}"},
    {"convolution(imd, ke), window={size=3x3 pad=1_1x1_1 stride=2x2}, dim_labels=b01f_01io->b01f, feature_group_count=2",
     "f32[<=2,4,<=4,4]{3,2,1,0}"},
    {"convolution(im, ke), window={size=3x3 pad=1_1x1_1 lhs_dilate=2x2 rhs_dilate=2x1}, dim_labels=b01f_01io->fb01, feature_group_count=2",
     "f32[4,2,13,15]{3,2,1,0}"},
    {"dot(j8, j8), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
     "s8[4,4]{1,0}"},
    {"dot(j8, b16), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
     "bf16[4,4]{1,0}"},
    {"dot(b16, sx), lhs_contracting_dims={}, rhs_contracting_dims={}",
     "f32[4,8,5,2]{3,2,1,0}"},
    {"dot(d, p), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}",
     "f32[<=4,<=5,5]{2,1,0}"},
    {"dot(p, d), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}",
     "f32[4,5,<=5]{2,1,0}"},
    {"ragged-dot(l, r, gs), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
     "f32[11,7]{1,0}"},
    {"ragged-dot(l2, r2, gs), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}, rhs_group_dims={}",
     "f32[3,4,7]{2,1,0}"},
    {"gather(p, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5,6}",
     "f32[7,5,6]{2,1,0}"},
    {"gather(p, id), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5,6}",
     "f32[<=7,5,6]{2,1,0}"},
    {"gather(d, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5,6}",
     "f32[7,<=5,6]{2,1,0}"},
    {"gather(d, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,2,6}",
     "f32[7,2,6]{2,1,0}"},
    {"gather(d, i), offset_dims={1,2}, collapsed_slice_dims={2}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5,1}",
     "f32[7,1,<=5]{2,1,0}"},
    {"scatter(p, i, up), update_window_dims={1,2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
     "f32[4,5,6]{0,1,2}"},
    {"scatter(d, i, up), update_window_dims={1,2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
     "f32[<=4,<=5,6]{0,1,2}"},
    {"scatter(p, id, upd), update_window_dims={1,2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
     "f32[4,5,6]{0,1,2}"},
    {"scatter(p, p, i, up, up), update_window_dims={1,2}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add2",
     "(f32[4,5,6]{0,1,2}, f32[4,5,6]{0,1,2})"},
    {"sort(d), dimensions={1}, to_apply=ge",
     "f32[<=4,<=5,6]{0,1,2}"},
    {"topk(p), k=3, largest=true",
     "(f32[4,5,3]{2,1,0}, s32[4,5,3]{2,1,0})"},
    {"topk(d), k=3, largest=true",
     "(f32[<=4,<=5,3]{2,1,0}, s32[<=4,<=5,3]{2,1,0})"},
    {"cholesky(sq)",
     "f32[4,5,5]{2,1,0}"},
    {"triangular-solve(sq, ts), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
     "f32[4,5,3]{0,1,2}"},
    {"triangular-solve(sq, ts), left_side=true, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE",
     "f32[4,5,3]{0,1,2}"},
    {"fft(cx), fft_type=FFT, fft_length={6}",
     "c64[<=4,5,6]{2,1,0}"},
    {"fft(cx), fft_type=FFT, fft_length={5}",
     "c64[<=4,5,6]{2,1,0}"},
    {"fft(cx), fft_type=IRFFT, fft_length={5,10}",
     "f32[<=4,5,10]{2,1,0}"},
    {"fft(d), fft_type=RFFT, fft_length={5,6}",
     "c64[<=4,<=5,4]{0,1,2}"},
    {"fft(p), fft_type=RFFT, fft_length={4,5,6}",
     "c64[4,5,4]{0,1,2}"},
    {"map(d, p), dimensions={0,1,2}, to_apply=add",
     "f32[<=4,<=5,6]{2,1,0}"},
    {"scan(sx, cin), dimensions={0}, to_apply=sc, num_carries=1",
     "(f32[5,2]{1,0}, f32[2]{0})"},
    {"call(cp), to_apply=cc",
     "f32[2,3]{1,0}"},
    {"conditional(pr, cp, cp), true_computation=cc, false_computation=cc",
     "f32[2,3]{1,0}"},
    {"pad(d, z), padding=1_1x0_0_1x0_0",
     "f32[<=6,<=9,6]{2,1,0}"},
    {"pad(p, z), padding=-1_0x-2_0_3x0_0",
     "f32[3,15,6]{2,1,0}"},
    {"concatenate(d, p), dimensions={2}",
     "f32[<=4,<=5,12]{2,1,0}"},
    {"concatenate(d, p), dimensions={0}",
     "f32[<=8,<=5,6]{2,1,0}"},
    {"concatenate(p, pb), dimensions={0}",
     "f32[8,5,6]{2,1,0}"},
    {"transpose(d), dimensions={2,0,1}",
     "f32[6,<=4,<=5]{1,2,0}"},
    {"set-dimension-size(d, n), dimensions={0}",
     "f32[<=4,<=5,6]{0,1,2}"},
    {"set-dimension-size(d, n), dimensions={2}",
     "f32[<=4,<=5,<=6]{0,1,2}"},
    {"batch-norm-training(d, v6, v6), epsilon=0.1, feature_index=2",
     "(f32[<=4,<=5,6]{0,1,2}, f32[6]{0}, f32[6]{0})"},
    {"batch-norm-grad(p, v6, v6, v6, p), epsilon=0.1, feature_index=2",
     "(f32[4,5,6]{0,1,2}, f32[6]{0}, f32[6]{0})"},
    {"batch-norm-grad(d, v6, v6, v6, d), epsilon=0.1, feature_index=2",
     "(f32[<=4,<=5,6]{0,1,2}, f32[6]{0}, f32[6]{0})"},
    {"batch-norm-inference(d, v6, v6, v6, v6), epsilon=0.1, feature_index=2",
     "f32[<=4,<=5,6]{0,1,2}"},
    {"reverse(d), dimensions={0}",
     "f32[<=4,<=5,6]{0,1,2}"},
    {"compare(d, p), direction=LT",
     "pred[<=4,<=5,6]{0,1,2}"},
    {"complex(p, d)",
     "c64[<=4,<=5,6]{0,1,2}"},
    {"after-all()",
     "token[]"},
    {"select(pr, cp, cp)",
     "f32[2,3]{0,1}"},
    {"clamp(z, p, z)",
     "f32[4,5,6]{0,1,2}"},
    {"add(p, d)",
     "f32[<=4,<=5,6]{0,1,2}"},
    {"add(q, p)",
     "f32[4,5,6]{1,0,2}"},
    {"abs(cx)",
     "f32[<=4,5,6]{2,1,0}"},
    {"real(cx)",
     "f32[<=4,5,6]{2,1,0}"},
    {"is-finite(q)",
     "pred[4,5,6]{1,0,2}"},
    {"transpose(q), dimensions={1,2,0}",
     "f32[5,6,4]{0,2,1}"},
    {"tuple(p, q)",
     "(f32[4,5,6]{0,1,2}, f32[4,5,6]{1,0,2})"},
    {"sort(q, p), dimensions={0}, to_apply=lt2",
     "(f32[4,5,6]{1,0,2}, f32[4,5,6]{0,1,2})"},
    {"set-dimension-size(p, n4), dimensions={0}",
     "f32[<=4,5,6]{0,1,2}"},
    {"fft(cx2), fft_type=IRFFT, fft_length={8}",
     "f32[4,8]{0,1}"},
    {"dot(q, p), lhs_contracting_dims={2}, rhs_contracting_dims={2}",
     "f32[4,5,4,5]{3,2,1,0}"},
    {"dot(v6, v6), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
     "f32[]"},
    {"add(p, pb)",
     "f32[4,5,6]{0,1,2}"},
    {"while(cp), condition=cnd, body=cc",
     "f32[2,3]{0,1}"},
    {"replica-id()",
     "u32[]"},
    {"partition-id()",
     "u32[]"},
    {"add-dependency(q, tk)",
     "f32[4,5,6]{1,0,2}"},
    {"domain(q), domain={kind=\"sharding\", entry={replicated}, exit={replicated}}",
     "f32[4,5,6]{1,0,2}"},
    {"reduce-window(p, p, z, z), window={size=1x2x2 stride=1x1x2}, to_apply=add2",
     "(f32[4,4,3]{2,1,0}, f32[4,4,3]{2,1,0})"},
    {"scaled-dot(b16, b16, sl, sl), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
     "bf16[4,4]{1,0}"},
};

static const struct {
  const char *inst, *message;
} refused[] = {
    {"reduce(p, z), dimensions={1,1}, to_apply=add",
     "reduce: dimensions names dimension 1 twice"},
    {"convolution(im, ke), window={size=3x3}, dim_labels=b01f_01io->b01f",
     "convolution: input features 6 must be feature_group_count 1 times the kernel's input features 3; got f32[2,8,8,6] and f32[3,3,3,4]"},
    {"convolution(im, ke), window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=3",
     "convolution: input features 6 must be feature_group_count 3 times the kernel's input features 3; got f32[2,8,8,6] and f32[3,3,3,4]"},
    {"convolution(im, ke), window={size=3x3}, dim_labels=b01f_01io->b01f, batch_group_count=2, feature_group_count=2",
     "convolution: feature_group_count and batch_group_count cannot both be greater than 1"},
    {"convolution(im, ke), window={size=3x2}, dim_labels=b01f_01io->b01f, feature_group_count=2",
     "convolution: window size 2 of spatial dimension 1 differs from the kernel f32[3,3,3,4]"},
    {"topk(d), k=7, largest=true",
     "topk: k=7 must be between 0 and the last dimension of f32[<=4,<=5,6]"},
    {"cholesky(ts)",
     "cholesky: the two minor dimensions of operand 0 must be equal; it is f32[4,5,3]"},
    {"triangular-solve(sq, ts), left_side=false, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE",
     "triangular-solve: the shared dimension of f32[4,5,5] and f32[4,5,3] does not match (left_side=false)"},
    {"fft(p), fft_type=FFT, fft_length={6}",
     "fft: FFT needs a complex operand; it is f32[4,5,6]"},
    {"scan(sx, cin), dimensions={0}, to_apply=sc",
     "scan: inputs must have one extent in dimension 0"},
    {"pad(p, z), padding=-1_0x-9_0x0_0",
     "pad: padding makes dimension 1 of f32[4,5,6] negative (-4)"},
    {"transpose(d), dimensions={2,0}",
     "transpose: dimensions must be a permutation of the 3 dimensions of f32[<=4,<=5,6]"},
    {"get-dimension-size(d), dimensions={7}",
     "get-dimension-size: dimensions names dimension 7, but the shape has 3 dimensions"},
    {"reverse(d), dimensions={0,0}",
     "reverse: dimensions names dimension 0 twice"},
    {"subtract(pr, pr)",
     "subtract: operand 0 must have numeric elements; it is pred[]"},
    {"and(p, p)",
     "and: operand 0 must have integer or pred elements; it is f32[4,5,6]"},
    {"negate(pr)",
     "negate: operand 0 must have numeric elements; it is pred[]"},
    {"complex(pb, pb)",
     "complex: operands must both be f32 or both f64; got bf16[4,5,6] and bf16[4,5,6]"},
    {"concatenate(p, v6), dimensions={0}",
     "concatenate: operands must agree in all dimensions but 0; got f32[4,5,6] and f32[6]"},
    {"transpose(p), dimensions={0,0,1}",
     "transpose: dimensions names dimension 0 twice"},
    {"reduce(p, z), dimensions={3}, to_apply=add",
     "reduce: dimensions names dimension 3, but the shape has 3 dimensions"},
    {"add(p, z)",
     "add: operands must have equal dimensions; got f32[4,5,6] and f32[] (there is no implicit broadcast; add a broadcast instruction)"},
    {"add(p, sq)",
     "add: operands must have equal dimensions; got f32[4,5,6] and f32[4,5,5] (there is no implicit broadcast; add a broadcast instruction)"},
    {"get-tuple-element(p), index=0",
     "get-tuple-element: the operand must be a tuple; it is f32[4,5,6]"},
    {"get-tuple-element(tp), index=2",
     "get-tuple-element: index 2 is out of range: the operand (f32[], f32[]) has 2 elements"},
    {"scan(sx, cin), dimensions={0}, num_carries=2, to_apply=sc",
     "scan: num_carries=2 must leave at least one input of 2 operands"},
    {"while(cp), condition=cc, body=cc",
     "while: condition=cc must return pred[]; it returns f32[2,3]"},
    {"conditional(pr, cp), true_computation=cc, false_computation=cc",
     "conditional: 2 branches need 2 operands after operand 0; got 1"},
    {"conditional(z, cp, cp), branch_computations={cc, cc}",
     "conditional: operand 0 must be pred[] or s32[]; it is f32[]"},
    {"gather(p, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={2,5,6}",
     "gather: dimension 0 is collapsed or batching, so its slice size must be at most 1; it is 2"},
    {"gather(p, i), offset_dims={2,1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,5,6}",
     "gather: offset_dims must be in ascending order"},
    {"gather(p, z), offset_dims={0,1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,5,6}",
     "gather: indices must be integers; they are f32[]"},
    {"scatter(p, i, up), update_window_dims={1,2}, inserted_window_dims={1}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
     "scatter: window dimension 1 of the updates f32[7,5,6] exceeds dimension 0 of f32[4,5,6]"},
    {"sort(p), dimensions={0}, to_apply=lt2",
     "sort: to_apply=lt2 must have 2 parameters; it has 4"},
    {"dot(p, sq), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
     "dot: contracting dimensions 1 and 0 of f32[4,5,6] and f32[4,5,5] differ in size"},
    {"dot(p, p), lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={1}, rhs_contracting_dims={1}",
     "dot: dimension 1 of the lhs is both batch and contracting"},
    {"convert(p)",
     "convert needs its result shape before the opcode"},
    {"reduce(p, p), dimensions={0}, to_apply=add",
     "reduce: start value 0 must be a scalar; it is f32[4,5,6]"},
    {"reduce(p, z), dimensions={0}, to_apply=add2",
     "reduce: to_apply=add2 must have 2 parameters; it has 4"},
    {"map(p), dimensions={0}, to_apply=add",
     "map: dimensions must be 0 to 2 in order"},
    {"select(p, p, p)",
     "select: the predicate must have pred elements; it is f32[4,5,6]"},
    {"batch-norm-training(d, v6, v6), epsilon=0.1, feature_index=1",
     "batch-norm-training: operand 1 must be a vector of the 5 features of f32[<=4,<=5,6]; it is f32[6]"},
    {"set-dimension-size(p, z), dimensions={0}",
     "set-dimension-size: the size must be s32[]; it is f32[]"},
    {"pad(p, z), padding=4611686018427387904_4611686018427387904x0_0x0_0",
     "pad: padding of dimension 0 overflows"},
    {"reduce-window(p, z), window={size=1x2}, to_apply=add",
     "reduce-window: the window has 2 dimensions, the operand f32[4,5,6] has 3"},
    {"call(p), to_apply=cc",
     "call: parameter 0 of to_apply=cc is f32[2,3], but gets f32[4,5,6]"},
    {"fft(p), fft_type=RFFT, fft_length={5}",
     "fft: fft_length needs 5 in dimension 2 of f32[4,5,6]"},
    {"concatenate(p, p), dimensions={3}",
     "concatenate: dimensions names dimension 3, but the shape has 3 dimensions"},
    {"select-and-scatter(p, p, z), window={size=1x1x2}, select=ge, scatter=add",
     "select-and-scatter: the source must have the shape of the windows, f32[4,5,5]; it is f32[4,5,6]"},
};
/* clang-format on */
