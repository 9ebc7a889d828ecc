import type { Sql } from '@pool/runtime/database/client'

const CHANNEL = 'lease_changes'
/** A payload must be shorter than 8,000 bytes (Postgres manual, NOTIFY). */
const MAX_PAYLOAD_BYTES = 7_900
/** A connection on which the process has not heard itself for this time is lost. Below it are two or three heartbeats. */
const MAX_SILENCE_MS = 6_000
/** Without a heartbeat of another replica for this time, nothing is sent. */
const MAX_PEER_SILENCE_MS = 10_000
/** With more slots, one notification says that any slot may have changed. */
const MAX_SLOTS = 2_000

export interface NotificationsOptions {
  /** Sends. May lead to a pooler. */
  readonly sql: Sql
  /** Creates a client that listens on a connection of its own. It must lead to the server itself. */
  readonly openListener: () => Sql
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Identifies this process: it does not receive its own notifications. */
  readonly sender: string
  readonly onChanged: (slots: readonly string[]) => void
  /** Notifications may have been lost. */
  readonly onAnyChanged: () => void
}

const SILENT =
  'no notification arrived for some seconds, so the witness listens on a new connection; if no `recovered` follows, ' +
  'WITNESS_LISTEN_URL must lead to the server itself and not to a pooler'

/** Splits the slots into payloads: JSON arrays of the sender and slots. */
export const toPayloads = (sender: string, slots: Iterable<string>): string[] => {
  const payloads: string[] = []
  let texts = [JSON.stringify(sender)]
  let size = 2 + Buffer.byteLength(sender) + 2
  const empty = size
  for (const slot of slots) {
    const text = JSON.stringify(slot)
    const bytes = Buffer.byteLength(text) + 1
    if (size + bytes > MAX_PAYLOAD_BYTES) {
      payloads.push(`[${texts.join()}]`)
      texts = [JSON.stringify(sender)]
      size = empty
    }
    texts.push(text)
    size += bytes
  }
  return [...payloads, `[${texts.join()}]`]
}

/**
 * Notifies the other replicas of the slots that have changed. A notification is a statement of its own after the write: its commit
 * takes a lock of the whole database, which the commit of a write must not wait for. Changes that happen while one is in
 * flight share the next. A lost notification delays waiters, and changes nothing else.
 */
export const createNotifications = (options: NotificationsOptions) => {
  const { sql, openListener, sender, onChanged, onAnyChanged, now } = options
  const changed = new Set<string>()
  let isSending = false
  let isHeartbeatDue = false
  let listener: Sql | undefined
  let heardAt = now()
  /** Whether the connection that listens has received a notification of this process. */
  let hasHeard = false
  let peerHeardAt = Number.NEGATIVE_INFINITY

  const send = async (): Promise<void> => {
    if (isSending) return
    isSending = true
    while (changed.size > 0 || isHeartbeatDue) {
      const payloads = changed.size > MAX_SLOTS ? [JSON.stringify([sender, null])] : toPayloads(sender, changed)
      changed.clear()
      isHeartbeatDue = false
      // Without synchronous_commit: a notification does not survive a restart of the server in any case.
      await sql`
        select set_config('synchronous_commit', 'off', true), pg_notify(${CHANNEL}, payload)
        from jsonb_array_elements_text(${sql.json(payloads)}) as payload`.catch(() => {})
    }
    isSending = false
  }

  const onPayload = (payload: string): void => {
    const [from, ...slots] = JSON.parse(payload) as (string | null)[]
    if (from === sender) {
      heardAt = now()
      hasHeard = true
      return
    }
    peerHeardAt = now()
    const names = slots.filter(slot => slot !== null)
    if (names.length < slots.length) onAnyChanged()
    else onChanged(names)
  }

  const close = async (): Promise<void> => {
    const closing = listener
    listener = undefined
    await closing?.end({ timeout: 0 })
  }

  /** Resolves when a new connection listens. */
  const listen = async (): Promise<void> => {
    await close()
    hasHeard = false
    const opened = openListener()
    listener = opened
    // The driver calls it again after it has replaced a lost connection.
    const onListening = () => {
      heardAt = now()
      onAnyChanged()
    }
    await opened.listen(CHANNEL, onPayload, onListening).catch(async error => {
      if (listener === opened) await close()
      throw error
    })
  }

  return {
    /** The other replicas, if any, must learn that the slot has changed. */
    notify(slot: string): void {
      if (now() - peerHeardAt > MAX_PEER_SILENCE_MS) return
      changed.add(slot)
      void send()
    },

    listen,
    close,

    /**
     * Sends a notification to itself, and resolves with whether an earlier one arrived. If none did for some seconds, listens
     * on a new connection and rejects.
     */
    async heartbeat(): Promise<boolean> {
      const isSilent = now() - heardAt > MAX_SILENCE_MS
      if (isSilent) await listen()
      isHeartbeatDue = true
      await send()
      if (isSilent) throw new Error(SILENT)
      return hasHeard
    },
  }
}
