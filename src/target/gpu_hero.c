/* What kernel an instruction, a fusion or a pair becomes
 * (hlo_fusion_analysis.cc, hlo_traversal.cc, FindNonTrivialHero).
 *
 * From each root the search for its hero climbs through ops that keep the
 * order of elements (intermediates: elementwise ops, bitcasts) while they have
 * one operand; then, through intermediates of up to three, for one tiled
 * transpose, else for one concatenate, from which nothing but intermediates is
 * reached. Failing both, a reduce at the end of the climb is the hero; else the
 * root is its own.
 *
 * Heroes choose the emitter: a reduction when the other roots can follow its
 * threads, a transpose when they agree on one, a concatenate of few operands,
 * a scatter, else a loop over the first root.
 */
#include <limits.h>
#include <string.h>

#include "target/gpu_impl.h"

/* ---- adaptors ---- */

gpu_adaptor lw_gpu_adaptor(const lw_inst *producer, const lw_inst *consumer) {
  gpu_adaptor a = {0};
  if (producer) a.inst[a.n++] = producer;
  a.inst[a.n++] = consumer;
  for (int32_t k = 0; k < a.n; k++)
    a.body[k] = lw_gpu_is_fusion(a.inst[k]) ? lw_gpu_body(a.inst[k]) : NULL;
  return a;
}

bool lw_gpu_contains(const gpu_adaptor *a, const lw_inst *i) {
  for (int32_t k = 0; k < a->n; k++)
    if (a->body[k] ? i->parent == a->body[k] : i == a->inst[k]) return true;
  return false;
}

/* The fusion whose body holds i, or NULL. */
static const lw_inst *fusion_of(const gpu_adaptor *a, const lw_inst *i) {
  for (int32_t k = 0; k < a->n; k++)
    if (a->body[k] && i->parent == a->body[k]) return a->inst[k];
  return NULL;
}

static const lw_inst *through_tuple(const gpu_adaptor *a, const lw_inst *o) {
  if (o->opcode != LW_OP_GET_TUPLE_ELEMENT) return NULL;
  const lw_inst *from = lw_inst_operand(o, 0);
  if (!lw_gpu_is_fusion(from)) return NULL;
  const lw_inst *root = lw_gpu_body(from)->root;
  int64_t index = lw_inst_i64(o, LW_ATTR_INDEX, 0);
  if (root->opcode != LW_OP_TUPLE || !lw_gpu_contains(a, root)) return NULL;
  return index < root->n_operands ? lw_inst_operand(root, (int32_t)index)
                                  : NULL;
}

/* What an operand stands for: parameters and fusions looked through. */
const lw_inst *lw_gpu_resolve(const gpu_adaptor *a, const lw_inst *o) {
  for (;;) {
    const lw_inst *element = through_tuple(a, o);
    if (element) return element;
    if (!lw_gpu_contains(a, o)) {
      if (lw_gpu_is_fusion(o) && lw_gpu_contains(a, lw_gpu_body(o)->root))
        return lw_gpu_body(o)->root;
      return o;
    }
    const lw_inst *fusion =
        o->opcode == LW_OP_PARAMETER ? fusion_of(a, o) : NULL;
    if (!fusion) return o;
    o = lw_inst_operand(fusion, (int32_t)lw_inst_param_number(o));
  }
}

static const lw_inst *operand_of(const gpu_adaptor *a, const lw_inst *i,
                                 int32_t k) {
  return lw_gpu_resolve(a, lw_inst_operand(i, k));
}

/* A parameter that is a root reads what it stands for. */
static int32_t operand_count(const gpu_adaptor *a, const lw_inst *i) {
  if (i->opcode != LW_OP_PARAMETER) return i->n_operands;
  return lw_gpu_resolve(a, i) != i;
}

static const lw_inst *any_operand(const gpu_adaptor *a, const lw_inst *i,
                                  int32_t k) {
  if (i->opcode == LW_OP_PARAMETER) return lw_gpu_resolve(a, i);
  return operand_of(a, i, k);
}

/* ---- users ---- */

typedef struct {
  const gpu_adaptor *a;
  lw_arena *arena;
  const lw_inst **v;
  int32_t n, cap;
} user_list;

static void add_user(user_list *l, const lw_inst *i) {
  if (l->n == l->cap) {
    int32_t cap = l->cap ? 2 * l->cap : 8;
    const lw_inst **v = LW_NEW_ARRAY(l->arena, const lw_inst *, cap);
    if (l->n) memcpy(v, l->v, (size_t)l->n * sizeof *v);
    l->v = v;
    l->cap = cap;
  }
  l->v[l->n++] = i;
}

static void resolve_user(user_list *l, const lw_inst *def, const lw_inst *user);

static void users_of_value(user_list *l, const lw_inst *def) {
  int32_t n;
  lw_inst **u = lw_inst_users(def, l->arena, &n);
  for (int32_t k = 0; k < n; k++) resolve_user(l, def, u[k]);
}

/* A root tuple of a fusion is looked through, to the readers of its elements.
 */
static void through_root_tuple(user_list *l, const lw_inst *tuple) {
  const lw_inst *fusion = fusion_of(l->a, tuple);
  if (!fusion) return;
  int32_t n;
  lw_inst **u = lw_inst_users(fusion, l->arena, &n);
  for (int32_t k = 0; k < n; k++) {
    if (u[k]->opcode == LW_OP_GET_TUPLE_ELEMENT)
      users_of_value(l, u[k]);
    else if (lw_gpu_contains(l->a, u[k]))
      add_user(l, u[k]);
  }
}

static void resolve_user(user_list *l, const lw_inst *def,
                         const lw_inst *user) {
  if (user->opcode == LW_OP_TUPLE && lw_inst_is_root(user)) {
    through_root_tuple(l, user);
  } else if (lw_gpu_contains(l->a, user)) {
    add_user(l, user);
  } else if (lw_gpu_is_fusion(user) &&
             lw_gpu_contains(l->a, lw_gpu_body(user)->root)) {
    int32_t slot = lw_gpu_operand_index(user, def), n;
    const lw_inst *p = lw_gpu_body(user)->params.data[slot];
    lw_inst **u = lw_inst_users(p, l->arena, &n);
    for (int32_t k = 0; k < n; k++) add_user(l, u[k]);
  }
}

const lw_inst **lw_gpu_users(const gpu_adaptor *a, const lw_inst *i,
                             lw_arena *arena, int32_t *n) {
  user_list l = {.a = a, .arena = arena};
  const lw_inst *fusion = fusion_of(a, i);
  if (fusion && lw_inst_is_root(i)) users_of_value(&l, fusion);
  users_of_value(&l, i);
  *n = l.n;
  return l.v;
}

/* ---- walks ---- */

void lw_gpu_visit_begin(lw_gpu_model *m) { m->stamp++; }

bool lw_gpu_visit(lw_gpu_model *m, const lw_inst *i) {
  size_t id = (size_t)i->id;
  while (m->stamps.len <= id) lw_vec_push(&m->stamps, 0);
  if (m->stamps.data[id] == m->stamp) return false;
  m->stamps.data[id] = m->stamp;
  return true;
}

bool lw_gpu_any(const gpu_adaptor *a, bool (*f)(const lw_inst *, void *),
                void *data) {
  for (int32_t k = 0; k < a->n; k++) {
    if (!a->body[k]) {
      if (f(a->inst[k], data)) return true;
      continue;
    }
    for (const lw_inst *i = a->body[k]->first; i; i = i->next) {
      if (i->opcode == LW_OP_PARAMETER || i->opcode == LW_OP_TUPLE ||
          i->opcode == LW_OP_GET_TUPLE_ELEMENT)
        continue;
      if (f(i, data)) return true;
    }
  }
  return false;
}

/* ---- heroes ---- */

bool lw_gpu_is_intermediate(const lw_inst *i, int32_t max_operands) {
  if (i->n_operands == 0 || i->n_operands > max_operands) return false;
  if (lw_inst_is_elementwise(i))
    return i->opcode != LW_OP_COPY ||
           (i->shape->type == lw_inst_operand(i, 0)->shape->type &&
            lw_gpu_equal_but_type(i->shape, lw_inst_operand(i, 0)->shape));
  switch ((int)i->opcode) {
    case LW_OP_BITCAST:
      return true;
    case LW_OP_RESHAPE:
      return lw_gpu_reshape_is_bitcast(lw_inst_operand(i, 0)->shape, i->shape,
                                       false);
    case LW_OP_TRANSPOSE:
      return lw_gpu_transpose_is_bitcast(i);
    default:
      return false;
  }
}

typedef bool (*is_hero_fn)(const lw_inst *);

static bool is_concatenate(const lw_inst *i) {
  return i->opcode == LW_OP_CONCATENATE;
}

typedef LW_VEC(const lw_inst *) inst_queue;

static bool blocks_hero(const lw_inst *i) {
  return i->opcode != LW_OP_TUPLE && i->opcode != LW_OP_PARAMETER &&
         !lw_gpu_is_intermediate(i, 3);
}

static void push_users(lw_gpu_model *m, const gpu_adaptor *a, inst_queue *q,
                       const lw_inst *i, lw_arena *arena) {
  int32_t n;
  const lw_inst **u = lw_gpu_users(a, i, arena, &n);
  for (int32_t k = 0; k < n; k++)
    if (lw_gpu_contains(a, u[k]) && lw_gpu_visit(m, u[k])) lw_vec_push(q, u[k]);
}

/* Does a hero reach nothing but intermediates, to all roots? */
static bool reaches_roots(lw_gpu_model *m, const gpu_adaptor *a,
                          const lw_inst *hero, lw_arena *arena) {
  inst_queue q = {0};
  bool good = true;
  lw_gpu_visit_begin(m);
  push_users(m, a, &q, hero, arena);
  for (size_t at = 0; good && at < q.len; at++) {
    good = !blocks_hero(q.data[at]);
    if (good) push_users(m, a, &q, q.data[at], arena);
  }
  lw_vec_free(&q);
  return good;
}

/* The one op of a kind above root, through intermediates; NULL for none or
 * several. */
static const lw_inst *find_hero(lw_gpu_model *m, const gpu_adaptor *a,
                                const lw_inst *root, is_hero_fn is_hero,
                                lw_arena *arena) {
  const lw_inst *hero = NULL;
  bool several = false;
  inst_queue q = {0};
  lw_gpu_visit_begin(m);
  lw_gpu_visit(m, root);
  lw_vec_push(&q, root);
  for (size_t at = 0; !several && at < q.len; at++) {
    const lw_inst *i = q.data[at];
    if (is_hero(i)) {
      several = hero != NULL;
      hero = i;
      continue;
    }
    if (!lw_gpu_is_intermediate(i, 3)) continue;
    for (int32_t k = 0; k < operand_count(a, i); k++) {
      const lw_inst *o = any_operand(a, i, k);
      if (lw_gpu_contains(a, o) && lw_gpu_visit(m, o)) lw_vec_push(&q, o);
    }
  }
  lw_vec_free(&q);
  if (!hero || several) return NULL;
  return reaches_roots(m, a, hero, arena) ? hero : NULL;
}

/* The climb inside one fusion's body, up to a parameter. Bodies grow at their
 * parameters, so that it goes on where it ended the last time. */
static const lw_inst *climb(lw_gpu_model *m, const lw_inst *from) {
  gpu_state *s = lw_gpu_state(m, from);
  const lw_inst *i = s->climb ? s->climb : from;
  while (i->parent != m->comp && lw_gpu_is_intermediate(i, 1) &&
         lw_inst_operand(i, 0)->opcode != LW_OP_PARAMETER)
    i = lw_inst_operand(i, 0);
  return s->climb = i;
}

const lw_inst *lw_gpu_hero(lw_gpu_model *m, const gpu_adaptor *a,
                           const lw_inst *root, lw_arena *arena) {
  const lw_inst *i = root;
  for (;;) {
    i = climb(m, i);
    if (!lw_gpu_is_intermediate(i, 1)) break;
    const lw_inst *o = operand_of(a, i, 0);
    if (!lw_gpu_contains(a, o)) break;
    i = o;
  }
  const lw_inst *hero = NULL;
  if (lw_gpu_holds(m, a, GPU_TILED_TRANSPOSE))
    hero = find_hero(m, a, i, lw_gpu_is_tiled_transpose, arena);
  if (!hero && lw_gpu_holds(m, a, GPU_CONCATENATES))
    hero = find_hero(m, a, i, is_concatenate, arena);
  if (hero) return hero;
  return i->opcode == LW_OP_REDUCE ? i : root;
}

/* ---- roots and parameters ---- */

static void open_tuple(user_list *l, const lw_inst *i) {
  if (i->opcode != LW_OP_TUPLE) {
    add_user(l, i);
    return;
  }
  for (int32_t k = 0; k < i->n_operands; k++)
    open_tuple(l, lw_inst_operand(i, k));
}

const lw_inst **lw_gpu_roots_of(const lw_inst *i, lw_arena *arena, int32_t *n) {
  user_list l = {.arena = arena};
  if (lw_gpu_is_fusion(i))
    open_tuple(&l, lw_gpu_body(i)->root);
  else
    add_user(&l, i);
  *n = l.n;
  return l.v;
}

/* A root of the consumer that is a bare parameter stands for the producer's. */
static void replace_parameter_roots(gpu_analysis *x, lw_arena *arena) {
  if (x->a.n < 2 || !x->a.body[1]) return;
  int32_t n_producer;
  const lw_inst **from = lw_gpu_roots_of(x->a.inst[0], arena, &n_producer);
  for (int32_t k = 0; k < x->n_roots; k++) {
    if (x->roots[k]->opcode != LW_OP_PARAMETER) continue;
    const lw_inst *o = lw_inst_operand(
        x->a.inst[1], (int32_t)lw_inst_param_number(x->roots[k]));
    int64_t index = 0;
    if (o->opcode == LW_OP_GET_TUPLE_ELEMENT) {
      index = lw_inst_i64(o, LW_ATTR_INDEX, 0);
      o = lw_inst_operand(o, 0);
    }
    if (o == x->a.inst[0] && index < n_producer) x->roots[k] = from[index];
  }
}

static bool listed(const lw_inst **v, int32_t n, const lw_inst *i) {
  for (int32_t k = 0; k < n; k++)
    if (v[k] == i) return true;
  return false;
}

/* A producer's parameter that is a root of it, and nothing else, is not read.
 */
static bool only_passed_on(const gpu_adaptor *a, int32_t slot) {
  if (!a->body[0]) return false;
  const lw_inst *p = a->body[0]->params.data[slot], *root = a->body[0]->root;
  bool is_root =
      p == root || (root->opcode == LW_OP_TUPLE && lw_gpu_uses(root, p));
  return is_root && lw_inst_user_count(p) <= 1;
}

static void find_params(gpu_analysis *x, lw_arena *arena) {
  const lw_inst *consumer = x->a.inst[x->a.n - 1];
  const lw_inst *producer = x->a.n == 2 ? x->a.inst[0] : NULL;
  int32_t most = consumer->n_operands + (producer ? producer->n_operands : 0);
  x->params = LW_NEW_ARRAY(arena, const lw_inst *, most);
  for (int32_t k = 0; k < consumer->n_operands; k++) {
    const lw_inst *o = lw_inst_operand(consumer, k), *from = o;
    if (producer && o->opcode == LW_OP_GET_TUPLE_ELEMENT)
      from = lw_inst_operand(o, 0);
    if (from != producer) x->params[x->n_params++] = o;
  }
  for (int32_t k = 0; producer && k < producer->n_operands; k++) {
    const lw_inst *o = lw_inst_operand(producer, k);
    if (!only_passed_on(&x->a, k) && !listed(x->params, x->n_params, o))
      x->params[x->n_params++] = o;
  }
}

static int smallest_bits(const lw_inst **v, int32_t n) {
  int bits = INT_MAX;
  for (int32_t k = 0; k < n; k++) {
    if (!lw_shape_is_array(v[k]->shape)) continue;
    int b = lw_gpu_bits(v[k]->shape->type);
    if (b < bits) bits = b;
  }
  return bits;
}

/* ---- emitters ---- */

/* Custom fusions name their emitter in their configuration. */
static bool configured_emitter(const gpu_analysis *x, lw_gpu_emitter *out) {
  const char *config = x->a.inst[x->a.n - 1]->backend_config;
  if (!config && x->a.n == 2) config = x->a.inst[0]->backend_config;
  if (!config) return false;
  if (strstr(config, "\"__triton")) {
    *out = LW_GPU_TRITON;
    return true;
  }
  if (strstr(config, "\"__custom_fusion\"") ||
      strstr(config, "\"__cudnn$fusion\"")) {
    *out = LW_GPU_CUSTOM;
    return true;
  }
  return false;
}

/* Roots beside a reduction write where it reads, or fold alike. */
static bool reduction_leads(lw_gpu_model *m, const gpu_analysis *x) {
  const lw_inst *first = NULL;
  for (int32_t k = 0; k < x->n_roots && !first; k++)
    if (lw_gpu_is_real_reduction(&m->d, x->roots[k], x->heroes[k]))
      first = x->heroes[k];
  if (!first) return false;
  int64_t n = operand_of(&x->a, first, 0)->shape->elements;
  for (int32_t k = 0; k < x->n_roots; k++) {
    if (x->roots[k] == first) continue;
    if (lw_gpu_is_real_reduction(&m->d, x->roots[k], x->heroes[k])) {
      if (!lw_gpu_reduction_equal(x->heroes[k], first)) return false;
    } else if (x->roots[k]->shape->elements != n) {
      return false;
    }
  }
  return true;
}

/* Roots beside a transpose write in the order it reads. */
static bool transpose_leads(gpu_analysis *x) {
  gpu_transpose t;
  x->transpose.inst = NULL;
  for (int32_t k = 0; k < x->n_roots; k++) {
    if (!lw_gpu_tiled_transpose(x->heroes[k], &t)) continue;
    if (!x->transpose.inst)
      x->transpose = t;
    else if (!lw_gpu_transpose_equal(&x->transpose, &t))
      return false;
  }
  if (!x->transpose.inst) return false;
  const lw_shape *in = lw_inst_operand(x->transpose.inst, 0)->shape;
  for (int32_t k = 0; k < x->n_roots; k++)
    if (!lw_gpu_is_tiled_transpose(x->heroes[k]) &&
        (!lw_shape_is_array(x->roots[k]->shape) ||
         !lw_gpu_trivially_reshaped(x->roots[k]->shape, in)))
      return false;
  return true;
}

static lw_gpu_emitter choose_emitter(lw_gpu_model *m, gpu_analysis *x) {
  lw_gpu_emitter e;
  bool transpose = transpose_leads(x);
  if (configured_emitter(x, &e)) return e;
  if (reduction_leads(m, x)) return LW_GPU_REDUCTION;
  if (transpose) return LW_GPU_TRANSPOSE;
  if (x->n_roots > 1) return LW_GPU_LOOP;
  if (x->roots[0]->opcode == LW_OP_SCATTER) return LW_GPU_SCATTER;
  if (x->roots[0]->opcode == LW_OP_SORT) return LW_GPU_SORT;
  if (is_concatenate(x->heroes[0]) && x->heroes[0]->n_operands <= 4 &&
      !lw_shape_is_tuple(x->roots[0]->shape))
    return LW_GPU_CONCATENATE;
  return LW_GPU_LOOP;
}

void lw_gpu_analyze(lw_gpu_model *m, const lw_inst *producer,
                    const lw_inst *consumer, lw_arena *arena, gpu_analysis *x) {
  memset(x, 0, sizeof *x);
  x->a = lw_gpu_adaptor(producer, consumer);
  x->roots = lw_gpu_roots_of(consumer, arena, &x->n_roots);
  replace_parameter_roots(x, arena);
  find_params(x, arena);
  x->heroes = LW_NEW_ARRAY(arena, const lw_inst *, x->n_roots + 1);
  for (int32_t k = 0; k < x->n_roots; k++)
    x->heroes[k] = lw_gpu_hero(m, &x->a, x->roots[k], arena);
  x->smallest_in_bits = smallest_bits(x->params, x->n_params);
  x->smallest_out_bits = smallest_bits(x->roots, x->n_roots);
  x->emitter = x->n_roots ? choose_emitter(m, x) : LW_GPU_LOOP;
  if (x->emitter == LW_GPU_LOOP) {
    x->transpose.inst = NULL;
    for (int32_t k = 0; k < x->n_roots; k++) x->heroes[k] = x->roots[k];
  }
}
