import './proxies.ci.test.ts'
