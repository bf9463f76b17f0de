// Tells every event of a stream as one line of JSON: npm's `eventsource`, which reconnects by itself.
import { EventSource } from 'eventsource'

const tell = (what) => process.stdout.write(JSON.stringify(what) + '\n')
const source = new EventSource(process.argv[2])
const event = (it) => tell({ kind: 'event', name: it.type, id: it.lastEventId, data: it.data })
for (const name of ['beat', 'note', 'drain', 'reset', 'gap', 'message']) source.addEventListener(name, event)
// Its timer of the next visit does not keep node alive.
setInterval(() => {}, 1 << 30)
source.onopen = () => tell({ kind: 'open' })
source.onerror = () => tell({ kind: 'error', closed: source.readyState === 2 })
