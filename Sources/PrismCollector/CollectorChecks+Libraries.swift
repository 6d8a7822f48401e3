public import PrismConfig
import PrismPacket

extension CollectorChecks {
  /// By libpq, OpenSSL and librdkafka.
  public static let libraries = CollectorChecks(
    storeFault: { uri in
      do throws(PostgreSQLTarget.Fault) { _ = try PostgreSQLTarget(uri: uri) } catch { return error.description }
      return nil
    },
    sealKeyFault: { pem in
      SealingPrivateKey(pem: pem) == nil ? "holds no X25519 key in PEM; prismctl keys new --seal makes one" : nil
    },
    signingKeyFault: { pem in
      SigningKey(pem: pem) == nil ? "holds no Ed25519 key in PEM; openssl genpkey -algorithm ed25519 makes one" : nil
    },
    propertiesFault: { path in
      do throws(OutputFailure) {
        _ = try KafkaOutput.properties(.init(brokers: "", propertiesFile: path))
      } catch { return error.description }
      return nil
    }, identityFault: ClientIdentity.fault)
}
