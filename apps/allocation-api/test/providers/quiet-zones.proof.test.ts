import './quiet-zones.ci.test.ts'
