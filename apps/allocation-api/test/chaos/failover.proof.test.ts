import './failover.ci.test.ts'
