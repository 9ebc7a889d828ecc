import { get } from 'node:http'

// Usage: healthcheck.js PATH. The exit code is 0 if the service in this container answers 200.

// An image has no /etc/hosts, so that "localhost" may have no address.
const service = { host: '127.0.0.1', port: process.env.PORT ?? 8080, path: process.argv[2], timeout: 2_000 }
const request = get(service, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1))
request.on('timeout', () => process.exit(1))
request.on('error', () => process.exit(1))
