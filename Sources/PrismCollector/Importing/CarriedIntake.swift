import PrismHTTP
package import PrismPacket
import PrismProtocol

/// Takes packets that came in files (docs/carrying.md), as if they had come over the network.
package struct CarriedIntake: Sendable {
  /// Where the owner of the state folder hands in a file; the body is the file.
  static let path = "/prism/import"

  private let collector: Collector

  package init(_ collector: Collector) { self.collector = collector }

  /// Takes one packet. - Returns: its line of `receipts.ndjson`.
  package func take(_ packet: CarriedPacket) async -> CarriedAnswer {
    let kind = packet.headers.kind
    let headers = packet.fields.map { (name: $0.name.lowercased(), value: $0.value) }
    let request = HTTPRequest(
      method: .post, path: kind.path, headers: headers, body: packet.body,
      peer: HTTPPeer(address: "a file", isLocal: true))
    let response: HTTPResponse
    do throws(CollectorRefusal) { response = try await collector.receive(request, kind, isCarried: true) } catch {
      response = error.response
    }
    return CarriedAnswer(
      headers: packet.headers, status: response.status,
      receipt: response.headers.first { $0.name == "Prism-Receipt" }?.value,
      verdict: response.headers.first { $0.name == "Prism-Verdict" }?.value,
      body: String(decoding: response.body, as: UTF8.self))
  }

  /// Closes the store, once nothing more is taken.
  package func end() async { await collector.close() }

  func answer(_ request: HTTPRequest) async -> HTTPResponse {
    do throws(CarriedPacketFault) {
      let answer = await take(try CarriedPacket(fileBytes: request.body))
      return HTTPResponse(status: 200, contentType: "application/json", text: answer.json.text + "\n")
    } catch { return CollectorRefusal(400, error.description).response }
  }
}
