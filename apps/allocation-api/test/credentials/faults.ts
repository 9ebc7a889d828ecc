import type { Identities } from '../support/credentials/identities.ts'
import {
  closeAtOnce,
  errorXml,
  listXml,
  overTls,
  resetAtOnce,
  toHttpResponse,
  withoutTls,
} from '../support/credentials/scenarios.ts'
import type { ConnectionHandler } from '../support/credentials/scripted-server.ts'

/** A server that says nothing of the credentials, and how the caller is told. */
export interface FailureCase {
  readonly what: string
  readonly scene: ConnectionHandler
  readonly message: RegExp
}

/** Faults below HTTP's meaning: they are the same whatever was asked. */
export const createTransportFailures = ({
  good,
  otherName,
  expired,
  unknownCa,
}: Identities): readonly FailureCase[] => {
  const raw = (text: string) => overTls(good, socket => void socket.end(text, 'latin1'))
  return [
    { what: 'closes at once', scene: closeAtOnce, message: /ended the connection/ },
    { what: 'resets at once', scene: resetAtOnce, message: /ended the connection/ },
    { what: 'closes after the request', scene: raw(''), message: /ended the connection/ },
    { what: 'a certificate of another name', scene: overTls(otherName, () => {}), message: /TLS/ },
    { what: 'a certificate that has expired', scene: overTls(expired, () => {}), message: /TLS/ },
    { what: 'a certificate of an unknown authority', scene: overTls(unknownCa, () => {}), message: /TLS/ },
    { what: 'plain HTTP', scene: withoutTls(toHttpResponse(200, listXml('x'))), message: /TLS/ },
    { what: 'garbage instead of TLS', scene: withoutTls('\0\xff garbage\r\n'), message: /TLS/ },
    { what: 'garbage instead of HTTP', scene: raw('garbage\r\n\r\n'), message: /not HTTP/ },
    {
      what: 'header fields without end',
      scene: raw(`HTTP/1.1 200 OK\r\nA: ${'a'.repeat(20_000)}`),
      message: /not HTTP/,
    },
    { what: 'half a body', scene: raw(toHttpResponse(200, listXml('x')).slice(0, -40)), message: /truncated/ },
    {
      what: 'a huge body',
      scene: raw(toHttpResponse(200, `${listXml('x')}${' '.repeat(1_024 * 1_024)}`)),
      message: /too large/,
    },
  ]
}

/** Whole answers over HTTP that say nothing of the credentials. */
export const createHttpFailures = ({ good }: Identities, target: number): readonly FailureCase[] => {
  const answers = (text: string) => overTls(good, socket => void socket.end(text))
  const location = `Location: https://fsn1.storage.test:${target}/`
  return [
    { what: '301 to a good server', scene: answers(toHttpResponse(301, '', [location])), message: /redirect/ },
    { what: '307 to a good server', scene: answers(toHttpResponse(307, '', [location])), message: /redirect/ },
    {
      what: '429',
      scene: answers(toHttpResponse(429, errorXml('AccessDenied'))),
      message: /limiting the request rate/,
    },
    { what: '500', scene: answers(toHttpResponse(500)), message: /status 500/ },
    { what: '502 with HTML', scene: answers(toHttpResponse(502, '<html>mark</html>')), message: /status 502/ },
    { what: '503', scene: answers(toHttpResponse(503, errorXml('ServiceUnavailable'))), message: /status 503/ },
    { what: '404', scene: answers(toHttpResponse(404)), message: /status 404/ },
  ]
}

/** What S3 does not answer, or not of the keys. */
export const createS3Failures = ({ good }: Identities): readonly FailureCase[] => {
  const answers = (status: number, body: string) =>
    overTls(good, socket => void socket.end(toHttpResponse(status, body)))
  const entities = '<!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
  return [
    { what: '200 with HTML', scene: answers(200, '<!doctype html><html></html>'), message: /not an S3 response/ },
    { what: '200 with nothing', scene: answers(200, ''), message: /not an S3 response/ },
    { what: '200 with another XML', scene: answers(200, '<ListBucketResult/>'), message: /not an S3 response/ },
    { what: '200 with an error', scene: answers(200, errorXml('InvalidAccessKeyId')), message: /not an S3 response/ },
    { what: '200 with an entity bomb', scene: answers(200, entities + listXml('&b;')), message: /not an S3 response/ },
    { what: 'the listing of anonymous', scene: answers(200, listXml('anonymous')), message: /as anonymous/ },
    { what: '503 SlowDown', scene: answers(503, errorXml('SlowDown')), message: /limiting the request rate/ },
    { what: '403 RequestTimeTooSkewed', scene: answers(403, errorXml('RequestTimeTooSkewed')), message: /clock/ },
    {
      what: '400 about a header',
      scene: answers(400, errorXml('AuthorizationHeaderMalformed')),
      message: /not an S3 response/,
    },
  ]
}
