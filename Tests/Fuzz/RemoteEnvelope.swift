import PrismConfig
import PrismPacket

#if FUZZ
  import FuzzSupport
#endif

/// Answers of a server of remote configuration. The first byte says whether the rest is the answer itself or the document
/// in a sound envelope.
#if FUZZ
  @main
#endif
enum RemoteEnvelopeHarness: FuzzHarness {
  private static let publicKey = [UInt8](repeating: 9, count: 32)

  static func run(_ input: ArraySlice<UInt8>) {
    var rest = input
    let isDocument = rest.takeByte() & 1 == 1
    if isDocument { return read(Array(rest)) }
    let answer = Array(rest)
    precondition((try? RemoteEnvelope.open(answer, publicKey: publicKey)) == nil, "a stranger's signature is taken")
    if let document = try? RemoteEnvelope.open(answer, publicKey: nil) { read(document) }
  }

  private static func read(_ document: [UInt8]) {
    guard let document = try? RemoteDocument(parsing: document) else { return }
    precondition(document.updateTime >= 0 && document.namespaces.count <= RemoteDocument.namespacesMax)
  }
}
