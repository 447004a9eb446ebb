// A certificate of its own for a scripted collector on 127.0.0.1.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Makes key and certificate in a folder; the certificate is its own authority. */
export function makeCertificate(folder: string): { certFile: string; key: string; cert: string } {
  const keyFile = join(folder, 'key.pem')
  const certFile = join(folder, 'cert.pem')
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const subject = ['-subj', '/CN=collector', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2']
  execFileSync('openssl', [...request, ...subject, '-keyout', keyFile, '-out', certFile], { stdio: 'ignore' })
  return { certFile, key: readFileSync(keyFile, 'utf8'), cert: readFileSync(certFile, 'utf8') }
}
