"""What the command line says of itself."""

EXAMPLES = """\
examples:
  pgcc query examples/beta.pgc "z2=0, z3=0"             Pr(z2 out, z3 out)
  pgcc query examples/beta.pgc "z1=1" "z1=0" --exact    two queries, as fractions
  pgcc query examples/beta.pgc --evidence rows.csv      a line per row of a table
  pgcc query --expr "0.3*rain + 0.7" "rain=1" --json    no file at all
  pgcc marginals examples/beta.pgc "z1=1"               Pr(variable in) for each, given that z1 is
  pgcc cardinality examples/beta.pgc --plot count.svg   how many are in
  pgcc sample graph.edges -n 1000 --seed 1              exact samples, as a table
  pgcc mode graph.edges                                 the most probable set: here, the heaviest tree
  pgcc score model.psdd test.csv --threads -1           average log-likelihood of the rows of a table
  pgcc convert model.psdd model.npz                     from one format to another
  pgcc show examples/beta.pgc                           size, facts, strategy, accuracy
  pgcc show examples/beta.pgc --dot | dot -Tsvg         draw it
  pgcc explore graph.edges -o graph.html                a web page to explore it in
  pgcc query kernel.npy "x1=1, x2=0" --kernel K         a determinantal point process
  pgcc query graph.edges "a-b=1"                        the edges of a random spanning tree
  pgcc compile examples/beta.pgc -o evaluator.py        readable, standalone Numba source
  pgcc fit data.csv --model simple-pgc -o model.npz     learn a model; ask it anything
  pgcc check examples/beta.pgc                          is it a distribution? proved, refuted or not proven
"""

QUERY = """\
Print the probability that what is observed is so, everything else summed out: a line for each EVIDENCE, or for each
row of a table. Without evidence it is that of nothing at all: 1, or with --no-normalize the total of the polynomial.
EVIDENCE is 'name=value, …': 1 for in, 0 for out, ? for unobserved. Odd names stand in quotes: '"my name"=1'.
"""

FILE = """a circuit: .pgc, .npz, or another format by its extension, such as a kernel (.npy, .csv) or a graph (.edges,
.tsv); - is .pgc text on standard input"""

SCORE = """\
Print the average natural log-likelihood of the rows of a table, under the distribution of the circuit. What is missing
in a row (? or nothing) is summed out. DATA is a CSV file; if its first line holds nothing but 1, 0, ? and gaps it is
data, one column per variable in the order of the circuit; otherwise it names the variables of the columns, and
variables without a column are unobserved. - is standard input. An array in .npy has one column per variable.
"""

MARGINALS = """\
Print the probability of every variable to be in, given what is observed: a line for each variable; with several pieces
of evidence or a table of them, a CSV table with a row for each. Evidence of probability 0 is an error.
"""

CARDINALITY = """\
Print the distribution of the number of variables that are in, given what is observed: a line for each number; with
several pieces of evidence or a table of them, a CSV table with a row for each.
"""

SAMPLE = """\
Print exact samples, given what is observed: a CSV table with the names of the variables in its first line. The same
seed gives the same samples, whatever the number of threads.
"""

MODE = """\
Print the most probable set, given what is observed: a line with the names that are in, its log-probability (with the
evidence, not given it; but given --size), and 'exact' or the gap: no set is more probable by more than that, in nats.
To find it is hard for many variables, so that the best set that is found within the time limit is printed.
"""

CONVERT = """\
Read a circuit and write it to OUT, in the format that its extension names, and tell the sizes of both. Probabilistic
circuits (.psdd, .sdd, .nnf, .uai …) become generating polynomials, smooth and over the same variables.
"""

EXPLORE = """\
Write a web page in which the model is explored: one file, which any browser opens without a server or a network. Every
variable has its marginal as a bar; click one to put it in, out, or leave it open, and all bars, the probability of the
evidence and the distribution of the size follow. It draws samples, finds the most probable set, and shows the circuit
and, of spanning trees, the graph. Its numbers are doubles with a bound on their error; where one is not certain, the
page says so.
"""

CHECK = """\
Tell whether a circuit is a probability distribution: multiaffine (no variable is squared), normalized (g(1) = 1) and
nonnegative (no negative coefficient). Each is proved, refuted with a witness, or not proven. The exit code is 0 if all
are proved, 1 if one is refuted, 3 otherwise, and 2 after an error.
"""

FIT = """\
Learn a model from the rows of a table and write it as a circuit, of which every other command answers questions.
Missing values (? or nothing) are summed out. The table is read once, in pieces: it may be longer than memory.
"""

CSV = """a CSV file with the names of variables in its first line, then rows of 1, 0 and (for unobserved) nothing, ? or
-1; variables without a column are unobserved; - is standard input"""

METHODS = "auto (the default), direct, top, bottom, roots, fft or ball; 'pgcc show' says which ones auto takes"

COMPLETION = """\
Print the script by which a shell completes commands, options and their values. For bash, in ~/.bashrc:
eval "$(pgcc completion bash)". For zsh: pgcc completion zsh > ~/.zfunc/_pgcc, a folder of $fpath.
"""

WARMUP = """Compile the kernels that people use, so that no later command waits for them: for images of containers and
clusters. They are kept in the user's folder of caches, or in PGCC_CACHE_DIR."""
