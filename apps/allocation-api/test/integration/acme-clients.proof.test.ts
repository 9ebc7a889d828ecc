import './acme-clients.ci.test.ts'
