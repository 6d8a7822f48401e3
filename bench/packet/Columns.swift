import Foundation
import PrismPacket
import PrismProtocol

/// Rows against columns, without and with a dictionary: bytes on the wire, and the processor's time of packing and of
/// reading. All in one run, in turns.
enum Columns {
  private static let rounds = 12
  /// What a dictionary is trained from: about as much as a collector takes.
  private static let dictionaryLines = 6000

  /// - Parameter file: a meta in each line, as a daemon sends it.
  /// - Parameter compression: how hard gzip tries.
  static func run(_ file: String, encoding: PacketEncoding, compression: Compression) throws {
    let lines = try Data(contentsOf: URL(filePath: file)).split(separator: 10).map { [UInt8]($0) }
    let key = Secret([UInt8](repeating: 7, count: 16))
    let dictionary = CompressionDictionary.trained(from: Array(lines.prefix(dictionaryLines)))
    func writer(_ form: PacketForm, _ dictionary: CompressionDictionary?) throws -> PacketWriter {
      try PacketWriter(
        cipher: .aes128GCM, keyID: "main", key: key, encoding: encoding, compression: compression,
        dictionary: dictionary, form: form)
    }
    let ways = try [CompressionDictionary?.none, dictionary].flatMap { dictionary in
      try [PacketForm.rows, .columns].map { form in
        (try writer(form, dictionary), try PacketReader(cipher: .aes128GCM, key: key, dictionary: dictionary))
      }
    }
    for rows in [50, 100, 1000, 10_000] where rows <= lines.count {
      let packets = stride(from: 0, through: lines.count - rows, by: rows).map { start in
        Array(lines[start..<start + rows].joined(separator: [10]))
      }
      var best = [[Double]](repeating: [.infinity, .infinity], count: ways.count)
      var bytes = [Int](repeating: 0, count: ways.count)
      for _ in 0..<rounds {
        for (form, (writer, reader)) in ways.enumerated() {
          let began = cpuSeconds()
          let written = try packets.map { try writer.write(headers(rows), metas: $0, payloads: []) }
          let packed = cpuSeconds()
          for (packet, metas) in zip(written, packets) {
            let read = try reader.read(packet.headers, body: packet.body, mac: nil)
            guard read.metas.text == metas else { fatalError("another text came back") }
          }
          let count = Double(rows * packets.count)
          best[form][0] = min(best[form][0], (packed - began) / count * 1e6)
          best[form][1] = min(best[form][1], (cpuSeconds() - packed) / count * 1e6)
          bytes[form] = written.reduce(0) { $0 + $1.body.count }
        }
      }
      let count = Double(rows * packets.count)
      func figures(_ form: Int) -> String {
        #"{"bytes":\#(Double(bytes[form]) / count),"packMicroseconds":\#(best[form][0]),"readMicroseconds":\#(best[form][1])}"#
      }
      print(
        #"{"rows a packet":\#(rows),"rows":\#(figures(0)),"columns":\#(figures(1)),"#
          + #""rows with a dictionary":\#(figures(2)),"columns with a dictionary":\#(figures(3))}"#)
    }
  }
}
