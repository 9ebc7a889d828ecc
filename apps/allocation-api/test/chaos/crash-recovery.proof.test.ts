import './crash-recovery.ci.test.ts'
