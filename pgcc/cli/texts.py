"""The help texts of the command line."""

from pgcc.methods import METHODS

EXAMPLES = """\
examples:
  pgcc query examples/beta.pgc "z2=0, z3=0"             the probability that z2 and z3 are out
  pgcc query examples/beta.pgc "z1=1" "z1=0" --exact    two queries, answered as fractions
  pgcc query examples/beta.pgc --evidence rows.csv      one answer per row of a table
  pgcc query --expr "0.3*rain + 0.7" "rain=1" --json    no file needed
  pgcc marginals examples/beta.pgc "z1=1"               the probability of each variable, given z1
  pgcc cardinality examples/beta.pgc --plot count.svg   how many variables are in, with a picture
  pgcc sample graph.edges -n 1000 --seed 1              exact samples, as a table
  pgcc mode graph.edges                                 the most probable set: here, the heaviest tree
  pgcc score model.psdd test.csv --threads -1           average log-likelihood of the rows of a table
  pgcc convert model.psdd model.npz                     from one format to another
  pgcc show examples/beta.pgc                           size, structure, strategy, accuracy
  pgcc show examples/beta.pgc --dot | dot -Tsvg         draw it with Graphviz
  pgcc explore graph.edges -o graph.html                an interactive web page
  pgcc query kernel.npy "x1=1, x2=0" --kernel K         a determinantal point process
  pgcc query graph.edges "a-b=1"                        an edge of a random spanning tree
  pgcc compile examples/beta.pgc -o evaluator.py        readable, standalone Numba source
  pgcc fit data.csv --budget 60 -o model.npz            learn a model for a minute, then ask it anything
  pgcc check examples/beta.pgc                          is it a distribution?
"""

QUERY = """\
Print the probability of the evidence, with everything else summed out: one line for each EVIDENCE, or for each row of
a table. Without any evidence the answer is 1 or, with --no-normalize, the total of the polynomial. EVIDENCE has the
form 'name=value, …', where 1 means in, 0 out and ? unobserved. A variable with states takes these as values, as in
'weather=rain', 'weather!=rain' or 'weather in {sun, rain}'. Put unusual names in quotes: '"my name"=1'.
"""

FILE = """a circuit: .pgc, .npz, or another format by its extension, such as a kernel (.npy, .csv) or a graph (.edges,
.tsv); - reads .pgc text from standard input"""

DATA = "a CSV file of 1, 0 and ? or nothing, or of states, or an array in .npy; it is read in pieces"

SCORE = """\
Print the average natural log-likelihood of the rows of a table under the distribution of the circuit. Missing values
(? or nothing) are summed out. DATA is a CSV file. If its first line has only 1, 0, ? and empty entries, it is data,
with one column per variable in the order of the circuit. Otherwise the first line names the variables of the columns,
and variables without a column are unobserved. DATA can also be an array in .npy, with one column per variable, or -
for standard input.
"""

MARGINALS = """\
Print the probability that each variable is in, given the evidence: one line per variable, and one per state of a
variable with states. For several pieces of evidence, or a table of them, print a CSV table with one row for each.
Evidence of probability 0 is an error.
"""

CARDINALITY = """\
Print the distribution of the number of variables that are in, given the evidence: one line per number. For several
pieces of evidence, or a table of them, print a CSV table with one row for each. Of variables with states, say which
states to count: --over 'late, weather=rain'.
"""

SAMPLE = """\
Print exact samples given the evidence, as a CSV table whose first line names the variables. The same seed gives the
same samples, whatever the number of threads.
"""

MODE = """\
Print the most probable set given the evidence: one line with the names that are in, the log-probability of the set
(jointly with the evidence, and conditional on --size), and either 'exact' or the gap: no set is more probable by more
than that, in nats. Finding the best set is hard for many variables, so this prints the best one that it finds within
the time limit. Without --size, --over names the variables to be assigned: the others are summed out.
"""

CONVERT = """\
Read a circuit, write it to OUT in the format that the extension names, and report the sizes of both. Probabilistic
circuits (.psdd, .sdd, .nnf, .uai …) become smooth generating polynomials over the same variables.
"""

EXPLORE = """\
Write an interactive web page for exploring the model: a single file that any browser opens, without a server or a
network. The page shows the marginal of every variable as a bar. Click a variable to put it in, to put it out, or to
leave it open, and all bars, the probability of the evidence and the distribution of the size follow. The page also
draws samples, finds the most probable set, and shows the circuit and, for spanning trees, the graph. Its numbers are
doubles with an error bound, and the page marks those that are not certain.
"""

CHECK = """\
Check whether a circuit is a probability distribution: multiaffine (no variable is squared), normalized (g(1) = 1) and
nonnegative (no negative coefficient). Each of these is proved, refuted with a witness, or not proven. The exit code is
0 if all are proved, 1 if one is refuted, 3 otherwise, and 2 after an error.
"""

FIT = """\
Learn a model from the rows of a table and write it as a circuit, which you can ask questions with all other commands.
Missing values (? or nothing) are summed out. The table is read once, in pieces, so it may be larger than memory.
"""

CSV = """a CSV file whose first line names variables, followed by rows of 1, 0 and (for unobserved) nothing, ? or -1, or
of states; variables without a column are unobserved; - reads standard input"""

METHOD = f"auto (the default), {', '.join(METHODS)}; 'pgcc show' says which of them auto uses"

COMPLETION = """\
Print a script that lets your shell complete commands, options and their values. For bash, put this in ~/.bashrc:
eval "$(pgcc completion bash)". For zsh: pgcc completion zsh > ~/.zfunc/_pgcc, where ~/.zfunc is a folder in $fpath.
The script is made by shtab.
"""

WARMUP = """Compile the commonly used kernels, so that no later command has to wait for them. This is useful for
container images and clusters. Kernels are stored in your cache folder, or in PGCC_CACHE_DIR."""
