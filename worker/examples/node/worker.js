#!/usr/bin/env node
// A worker in Node: softmax regression on Fashion-MNIST. worker/examples/README.md explains the protocol.
const {once} = require('events');
const fs = require('fs');
const {parseArgs, promisify} = require('util');
const zlib = require('zlib');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const PIXELS = 28 * 28, CLASSES = 10, SIZE = PIXELS * CLASSES;  // The model is one matrix with a row for each pixel.
const BATCH = 100, CHUNK = 1 << 18;  // samples, and elements in a message
const EXIT_CODES = {BAD_OPTIMIZER: 2, NOT_FINITE: 2, NO_SERVER: 3, UNAVAILABLE: 3, DRAINING: 3, DIVERGED: 7};
const PROTO = loader.loadSync(['sluice/v1/parameter_server.proto', 'google/rpc/error.proto'], {
  includeDirs: [`${__dirname}/../../../proto`], keepCase: true, longs: String, enums: String, defaults: true,
});

// The reason that the server gave for an error, or else gRPC's status. A server that ends may cancel calls.
function reasonOf(error) {
  const [status] = error.metadata?.get('grpc-status-details-bin') ?? [];
  if (!status) return error.code === grpc.status.CANCELLED ? 'UNAVAILABLE' : grpc.status[error.code] ?? error.code;
  const [detail] = PROTO['google.rpc.Status'].deserialize(status).details;
  return PROTO['google.rpc.ErrorInfo'].deserialize(detail.value).reason;
}

// A session with the server, and the parameters that were pulled last, as one vector.
class Worker {
  constructor(flags) {
    const {ParameterServer} = grpc.loadPackageDefinition(PROTO).sluice.v1;
    // Calls have no deadline, since other workers may take their time. Pings notice that the server is gone.
    this.server = new ParameterServer(flags.server, grpc.credentials.createInsecure(), {'grpc.keepalive_time_ms': 1e4});
    this.token = new grpc.Metadata();
    const [token] = fs.readFileSync(flags['token-file'], 'utf8').split('\n');
    if (token) this.token.set('authorization', `Bearer ${token}`);
    this.parameters = new Float32Array(SIZE);
    this.sequence = 0;
    const weight = {name: 'weight', shape: [PIXELS, CLASSES], kind: 'PARAMETER', dtype: 'FLOAT32', length: SIZE};
    this.request = {role: 'WORKER', worker: flags.name, process_nonce: 1 + Math.floor(Math.random() * 2 ** 52),
                    layout: {ranges: [weight]}, optimizer: {sgd: {learning_rate: Number(flags['learning-rate'])}}};
  }

  // Opens a session and takes the job's parameters. If the job has none, it gets this worker's.
  async join() {
    await promisify(this.server.waitForReady).call(this.server, Date.now() + 60000).catch(() => {
      throw {code: 'NO_SERVER', message: `no server answers at ${this.server.getChannel().getTarget()}`};
    });
    // The stream stays open. When it breaks, so do the other calls.
    const events = this.server.Join(this.request, this.token).on('error', () => {});
    [{welcome: this.welcome}] = await once(events, 'data');
    this.known &&= this.welcome.resumed;
    const beat = () => this.server.Heartbeat({session: this.welcome.session}, this.token, () => {});
    this.heartbeats ??= setInterval(beat, (this.welcome.lease.seconds * 1e9 + this.welcome.lease.nanos) / 3e6);
    if (!this.welcome.initialized) await this.send('InitializeParams', {}, this.parameters);
    await this.pull({min_step: this.welcome.step});
    return this.known;
  }

  // Sends a push or an offer of parameters: a header, then chunks that cover the vector.
  send(method, header, vector) {
    return new Promise((resolve, reject) => {
      const stream = this.server[method](this.token, (error, answer) => error ? reject(error) : resolve(answer));
      stream.write({header: {...header, session: this.welcome.session}});
      const bytes = Buffer.from(vector.buffer);  // of a little-endian machine
      for (let first = 0; first < SIZE; first += CHUNK)
        stream.write({chunk: {offset: first, payload: bytes.subarray(4 * first, 4 * (first + CHUNK))}});
      stream.end();
    });
  }

  // Takes the parameters of one step, as soon as the condition holds.
  async pull(condition) {
    const bytes = new Uint8Array(4 * SIZE);
    const request = {...condition, session: this.welcome.session};
    const [{header}, ...parts] = await this.server.PullParams(request, this.token).toArray();
    for (const {chunk} of parts) bytes.set(chunk.payload, 4 * chunk.offset);
    [this.pulled, this.parameters] = [header, new Float32Array(bytes.buffer)];
  }

  // Pushes a gradient, and pulls what follows. The push counts once, however often it has to be sent.
  async push(gradient, loss) {
    const {step, incarnation} = this.pulled;
    const header = {sequence: ++this.sequence, step, incarnation, samples: BATCH, loss};
    this.known = true;
    for (let lost = false;;) {
      try {
        if (lost && !await this.join()) return 'GIVEN_UP';  // Nobody knows whether it counted.
        const {disposition, first_disposition} = await this.send('PushGradients', header, gradient);
        await this.pull({after: this.sequence});
        return disposition === 'DUPLICATE' ? first_disposition : disposition;
      } catch (error) {
        lost = ['UNAVAILABLE', 'UNKNOWN_SESSION', 'NOT_INITIALIZED'].includes(reasonOf(error));
        if (!lost && reasonOf(error) !== 'JOURNAL_STOPPED') throw error;
        await new Promise(resolve => setTimeout(resolve, 500));
      }
    }
  }
}

// The logarithm of the probability of each class.
function logSoftmax(parameters, image) {
  const scores = Array(CLASSES).fill(0);
  for (let i = 0; i < SIZE; ++i) scores[i % CLASSES] += parameters[i] * image[Math.floor(i / CLASSES)] / 255;
  const largest = Math.max(...scores);
  const sum = scores.reduce((sum, score) => sum + Math.exp(score - largest), 0);
  return scores.map(score => score - largest - Math.log(sum));
}

// The gradient of a batch's mean cross-entropy, and that mean.
function gradientOf(parameters, batch) {
  const gradient = new Float32Array(SIZE);
  let loss = 0;
  for (const [image, label] of batch) {
    const logs = logSoftmax(parameters, image);
    loss -= logs[label] / BATCH;
    const slopes = logs.map((log, c) => (Math.exp(log) - (c === label)) / BATCH / 255);
    for (let i = 0; i < SIZE; ++i) gradient[i] += slopes[i % CLASSES] * image[Math.floor(i / CLASSES)];
  }
  return [gradient, loss];
}

function load(folder, part) {
  const [images, labels] = ['images-idx3', 'labels-idx1'].map(
      kind => zlib.gunzipSync(fs.readFileSync(`${folder}/${part}-${kind}-ubyte.gz`)));
  return Array.from(labels.subarray(8), (label, i) => [images.subarray(16 + i * PIXELS, 16 + (i + 1) * PIXELS), label]);
}

async function train() {
  const flag = value => ({type: 'string', default: value});
  const flags = parseArgs({options: {
    server: flag(''), 'token-file': flag('/dev/null'), name: flag(`node-${process.pid}`), 'max-steps': flag('1000'),
    'learning-rate': flag('0.125'), 'data-dir': flag('/usr/share/datasets/fashion-mnist'),
  }}).values;
  if (!flags.server) throw {code: 'USAGE', message: 'expected --server=ADDRESS'};
  const data = load(flags['data-dir'], 'train'), test = load(flags['data-dir'], 't10k');
  const worker = new Worker(flags);
  await worker.join();
  const {index, workers} = worker.welcome;
  for (let batch = 0; batch < flags['max-steps']; ++batch) {
    const samples = Array.from({length: BATCH}, (_, i) => data[((batch * BATCH + i) * workers + index) % data.length]);
    const [gradient, loss] = gradientOf(worker.parameters, samples);
    console.log(`push ${batch + 1}: loss ${loss.toFixed(4)}, ${await worker.push(gradient, loss)}`);
  }
  const isRight = ([image, label]) => logSoftmax(worker.parameters, image).every((log, _, logs) => log <= logs[label]);
  const results = {'test accuracy': test.filter(isRight).length / test.length};
  await promisify(worker.server.Leave).call(worker.server, {session: worker.welcome.session, results}, worker.token);
}

train().then(() => process.exit(0), error => {
  console.error(`worker.js: ${error.details ?? error.message}`);
  process.exit(/USAGE|PARSE_ARGS/.test(error.code) ? 2 : EXIT_CODES[reasonOf(error)] ?? 1);
});
