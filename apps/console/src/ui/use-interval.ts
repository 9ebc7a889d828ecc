import { useEffect } from 'preact/hooks'

/** Calls `run` repeatedly while the page is visible. */
export const useInterval = (run: () => void, ms: number): void => {
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') run()
    }, ms)
    return () => clearInterval(timer)
  }, [run, ms])
}
