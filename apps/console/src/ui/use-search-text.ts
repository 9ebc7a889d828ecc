import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

/** Typing pauses this long before the service is asked. */
const SEARCH_PAUSE_MS = 120

export interface SearchText {
  /** What the box shows. */
  readonly text: string
  readonly setText: (text: string) => void
  /** What has been typed so far. The caller writes it to the address, with something else that has changed. */
  readonly take: () => string
}

/**
 * The text of a search box whose address keeps it. `onPause` writes the text to the address when the typing pauses. The
 * address repeats that text a moment later, when more may have been typed: only a text from elsewhere replaces what is typed.
 */
export const useSearchText = (addressText: string, onPause: (text: string) => void): SearchText => {
  const [text, setText] = useState(addressText)
  const latest = useRef({ addressText, onPause })
  latest.current = { addressText, onPause }
  const sentText = useRef(addressText)
  const take = () => {
    sentText.current = text
    return text
  }
  // Only typing starts the pause.
  useEffect(() => {
    const timer = setTimeout(() => {
      if (text !== latest.current.addressText) latest.current.onPause(take())
    }, SEARCH_PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  // The address changes without typing: back, a link, "clear". Before the pause of an earlier letter can end.
  useLayoutEffect(() => {
    if (addressText === sentText.current) return
    sentText.current = addressText
    setText(addressText)
  }, [addressText])
  return { text, setText, take }
}
