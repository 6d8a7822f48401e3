package import PrismBase
import PrismHTTP
package import PrismPacket
import PrismProtocol

/// A folder of packet files, as `prismctl carry` wrote it, perhaps of several machines.
package struct CarriedFolder {
  /// A packet of the largest body, and its head.
  private let fileBytesMax: Int
  private let path: String

  /// The names of files that hold no whole packet, and why.
  package private(set) var faults: [(name: String, fault: String)] = []
  /// The names of the packets' files, each behind the one before it in its stream.
  package private(set) var names: [String] = []

  /// Reads the heads of all files.
  /// - Throws: for a folder that can't be listed.
  package init(_ path: String, bodyBytesMax: Int) throws(FileError) {
    (self.path, fileBytesMax) = (path, bodyBytesMax + CarriedPacket.headBytesMax)
    var packets: [PacketID: (name: String, dependsOn: PacketID?)] = [:]
    for name in try Folder.names(in: path) where name.hasSuffix(CarriedPacket.fileSuffix) {
      switch read(name) {
      case .success(let packet): packets[packet.headers.packetID] = (name, packet.headers.dependsOn)
      case .failure(let unreadable): faults.append((name, unreadable.reason))
      }
    }
    names = Self.inOrder(packets)
  }

  /// A file that holds no whole packet.
  package struct Unreadable: Error {
    /// In words, without the file's name.
    package let reason: String
  }

  package func read(_ name: String) -> Result<CarriedPacket, Unreadable> {
    do {
      return .success(
        try CarriedPacket(fileBytes: SmallFile.read(FilePath.joined(path, name), bytesMax: fileBytesMax)))
    } catch { return .failure(Unreadable(reason: "\(error)")) }
  }

  /// By their chains; the chains by their first packets' ids, which rise with time.
  private static func inOrder(_ packets: [PacketID: (name: String, dependsOn: PacketID?)]) -> [String] {
    var followers: [PacketID: [PacketID]] = [:]
    var first: [PacketID] = []
    for (id, packet) in packets {
      if let before = packet.dependsOn, packets[before] != nil {
        followers[before, default: []].append(id)
      } else {
        first.append(id)
      }
    }
    var (order, next) = ([String](), Array(first.sorted { $0.description > $1.description }))
    while let id = next.popLast() {
      order += packets[id].map { [$0.name] } ?? []
      next += (followers[id] ?? []).sorted { $0.description > $1.description }
    }
    return order
  }
}

/// Takes packets that came in files (docs/carrying.md), as if they had come over the network.
package struct CarriedIntake: PageAnswers {
  /// Where the owner of the state folder hands in a file; the body is the file.
  static let path = "/prism/import"

  private let collector: Collector

  package init(_ collector: Collector) { self.collector = collector }
  init(api: PageAPI) { collector = api.collector }

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

  /// `POST /prism/import`
  func answer(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    do throws(CarriedPacketFault) {
      return PageAPI.json(of: await take(try CarriedPacket(fileBytes: request.http.body)).json)
    } catch { throw CollectorRefusal(400, error.description) }
  }
}
