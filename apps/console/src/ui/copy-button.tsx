import { useState } from 'preact/hooks'

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
