import type { DeploymentStatus, ListedName } from '@pool/contract'
import { type ComponentChildren, Fragment } from 'preact'
import { useState } from 'preact/hooks'

/** Terms with their values. A term without a value is left out. */
export const Facts = ({ facts }: { readonly facts: Readonly<Record<string, ComponentChildren>> }) => (
  <dl class="facts">
    {Object.entries(facts).map(
      ([term, value]) =>
        value !== undefined &&
        value !== null &&
        value !== false &&
        value !== '' && (
          <Fragment key={term}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </Fragment>
        ),
    )}
  </dl>
)

/** What happens, a sentence in each line. */
export const Sentences = ({ sentences }: { readonly sentences: readonly string[] }) => (
  <ul class="sentences">
    {sentences.map(sentence => (
      <li key={sentence}>{sentence}</li>
    ))}
  </ul>
)

type StatusTone = 'ok' | 'busy' | 'warn' | 'bad' | 'idle'

/** A status as a symbol and a word, so that it needs no colour. */
export const Status = ({ tone, text }: { readonly tone: StatusTone; readonly text: string }) => (
  <span class={`status ${tone}`}>{text}</span>
)

const nameTones: Readonly<Record<ListedName['state'], readonly [StatusTone, string]>> = {
  free: ['idle', 'free'],
  reserved: ['busy', 'reserved'],
  active: ['ok', 'active'],
  'cooling-off': ['idle', 'cooling off'],
  held: ['warn', 'held'],
}

export const NameStatus = ({ state }: Pick<ListedName, 'state'>) => {
  const [tone, text] = nameTones[state]
  return <Status tone={tone} text={text} />
}

const dnsTones = { pending: 'busy', published: 'ok', failing: 'bad' } as const

/** After a release, the records are published when they have been deleted. */
export const DnsStatusText = ({ state, dns }: Pick<ListedName, 'state' | 'dns'>) => {
  if (dns === undefined) return <span class="muted">–</span>
  if (state !== 'active' && dns.status === 'published') return <Status tone="idle" text="deleted" />
  return <Status tone={dnsTones[dns.status]} text={dns.status} />
}

const deploymentTones: Readonly<Record<DeploymentStatus, StatusTone>> = {
  pending: 'busy',
  provisioning: 'busy',
  ready: 'ok',
  failed: 'bad',
  destroying: 'busy',
  destroyed: 'idle',
}

export const DeploymentStatusText = ({ status }: { readonly status: string }) => (
  <Status tone={deploymentTones[status as DeploymentStatus] ?? 'idle'} text={status} />
)

const SHOWN_MS = 2_000

/** A page that was loaded over plain HTTP has no clipboard. */
const hasClipboard = 'clipboard' in navigator

/** Copies a text; nothing where that is impossible. `what`: it completes "Copy …" for a screen reader. */
export const CopyButton = ({ text, what }: { readonly text: string; readonly what: string }) => {
  const [isCopied, setIsCopied] = useState(false)
  if (!hasClipboard) return null
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setIsCopied(true)
    setTimeout(() => setIsCopied(false), SHOWN_MS)
  }
  return (
    <button type="button" class="plain" onClick={() => void copy()}>
      {isCopied ? 'Copied' : 'Copy'}
      <span class="visually-hidden"> {what}</span>
    </button>
  )
}
