import { type LogSettings, log, type WitnessLogLevel } from '../src/log.ts'

const WORKERD_LEVELS: Readonly<Partial<Record<string, WitnessLogLevel>>> = { error: 'error', warn: 'info' }

const isJsonObject = (text: string): boolean => {
  try {
    return text.startsWith('{') && typeof JSON.parse(text) === 'object'
  } catch {
    return false
  }
}

/** Passes a log line of the worker to `onLine` unchanged, and logs a message of workerd itself in the same format. */
export const forwardLogLine = (
  settings: LogSettings,
  message: string,
  level: string,
  onLine: (line: string) => void,
): void => {
  if (isJsonObject(message)) onLine(message)
  else log(settings, WORKERD_LEVELS[level] ?? 'debug', { msg: 'workerd', text: message })
}
